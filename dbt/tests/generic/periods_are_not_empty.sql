{# A version holds from before it ends. In: columns of ours that the table calls otherwise. #}
{% test periods_are_not_empty(model, ours={}) %}
select * from {{ model }}
where {{ ours.get('valid_to_seq', 'valid_to_seq') }} <= {{ ours.get('valid_from_seq', 'valid_from_seq') }}
{% endtest %}

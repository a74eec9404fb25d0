{# A version holds from before it ends. #}
{% test periods_are_not_empty(model) %}
select * from {{ model }} where valid_to_seq <= valid_from_seq
{% endtest %}

{# None of these columns is null, whatever their names. #}
{% test never_null(model, columns) %}
select * from {{ model }} where
  {% for name in columns %}{{ identifier(name) }} is null{{ ' or ' if not loop.last }}{% endfor %}
{% endtest %}

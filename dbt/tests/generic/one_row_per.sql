{# These columns identify a row: no two rows agree in all of them, and none of them is null. #}
{% test one_row_per(model, columns) %}
select {{ columns_of(columns) }}, count(*) as num_rows from {{ model }}
group by {{ columns_of(columns) }}
having count(*) > 1{% for name in columns %} or {{ identifier(name) }} is null{% endfor %}

{% endtest %}

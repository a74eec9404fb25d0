{# No two rows agree in all these columns. #}
{% test one_row_per(model, columns) %}
select {{ columns_of(columns) }}, count(*) as num_rows from {{ model }}
group by {{ columns_of(columns) }} having count(*) > 1
{% endtest %}

{# Conflicts of a version that was put onto a row that nothing has taken away. -#}
{% macro onto_row() -%}
('insert_over_row', 'key_change_onto_row', 'update_without_row_onto_row')
{%- endmacro %}

{# Some fields of rows, as lists; for `literals`. -#}
{% macro rows_of(rows, fields) -%}
  {%- set picked = [] -%}
  {%- for row in rows -%}
    {%- set values = [] -%}
    {%- for field in fields %}{% do values.append(row[field]) %}{% endfor -%}
    {%- do picked.append(values) -%}
  {%- endfor -%}
  {{ return(picked) }}
{%- endmacro %}

{# Rows as an inline table; none is SQL NULL. Many are one text in JSON, where Spark would plan each value as an
   expression of its own. The text stands in a row, for a constant would be parsed into an expression that every rule of
   the optimizer carries along (twice the time). In: name, {column: type}, rows as lists, is DataFusion asked. -#}
{% macro literals(alias, columns, rows, is_local=false) -%}
{%- if rows | length > 20 and not is_local -%}
  {%- set names, types, values_json = columns.keys() | list, [], [] -%}
  {%- for column, type in columns.items() %}{% do types.append(column ~ ': ' ~ type) %}{% endfor -%}
  {%- for row in rows %}{% do values_json.append(dict(zip(names, row))) %}{% endfor -%}
select inline(from_json(values_json, 'array<struct<{{ types | join(', ') }}>>', map('mode', 'FAILFAST')))
from values ({{ text_literal(tojson(values_json)) }}) as {{ alias }}(values_json)
{%- else -%}
select {% for column, type in columns.items() -%}
         cast({{ column }} as {{ type }}) as {{ column }}{{ ', ' if not loop.last }}
       {%- endfor %}
  from values
    {% for row in rows -%}
    ({% for value in row -%}
      {%- if value is none or value is number -%} {{ 'null' if value is none else value }}
      {%- elif is_local -%} '{{ value | replace("'", "''") }}'
      {%- else -%} {{ text_literal(value) }}
      {%- endif -%}
      {{ ', ' if not loop.last }}
    {%- endfor %}){{ ',' if not loop.last }}
    {% endfor -%}
    as {{ alias }}({{ columns | join(', ') }})
{%- endif -%}
{%- endmacro %}

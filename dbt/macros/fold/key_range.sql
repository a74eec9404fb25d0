{# The range of a batch's keys in literals, so that file statistics and pages prune what it cannot touch: a batch of the
   newest keys reads little of a large table. In: a row of `survey` with first_n, last_n of `ranged_keys`. Out: a
   condition on current as `c`. -#}
{% macro key_range(name, row) -%}
  {%- set terms = [] -%}
  {%- for k in ranged_keys(name) -%}
    {%- set first, last = row['first_%d' % loop.index], row['last_%d' % loop.index] -%}
    {%- if first is not none -%}
      {%- do terms.append('c.%s between cast(%s as %s) and cast(%s as %s)'
                          % (identifier(k.name), text_literal(first), k.type, text_literal(last), k.type)) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(terms | join(' and ') or 'true') }}
{%- endmacro %}


{# Key columns that have statistics (see `create_version_tables`), of types whose text is a literal. -#}
{% macro ranged_keys(name) -%}
  {%- set contract, found = contract(name), [] -%}
  {%- for k in contract.key[:3] -%}
    {%- for c in contract.columns if c.name == k and c.type.split('(')[0]
          in ('tinyint', 'smallint', 'int', 'bigint', 'decimal', 'date', 'string') -%}
      {%- do found.append(c) -%}
    {%- endfor -%}
  {%- endfor -%}
  {{ return(found) }}
{%- endmacro %}

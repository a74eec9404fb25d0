{# Versions that gold holds, in the fold's terms. In: `<t>__past` or `<t>__current`, the expression for valid_to_seq. -#}
{% macro versions_of(name, batch, table, valid_to_seq) -%}
{%- set contract = contract(name) -%}
select source, {% for k in contract.key %}`{{ k }}` as _key_{{ loop.index }}, {% endfor %}valid_from_seq, {{ valid_to_seq }} as valid_to_seq,
         named_struct({% for c in contract.columns %}'{{ c.name }}', `{{ c.name }}`{{ ', ' if not loop.last }}{% endfor %}) as image,
         not_supplied, conflict, {{ lineage() | join(', ') }}
  from {{ '(select * from %s.%s__%s where false)' % (target.schema, name, table) if batch.is_first else '%s.%s__%s' % (target.schema, name, table) }} c
{%- endmacro %}

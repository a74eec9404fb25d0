{# Versions that gold holds, in the fold's terms. In: `past` or `current`, a condition on it as `c`. Of `current` the
   rows alone that the batch touches, where they have been read. -#}
{% macro versions_of(name, batch, table, condition='true') -%}
{%- set contract = contract(name) -%}
{%- set our = ours(contract) -%}
select {{ unprefixed(our, ['source']) }},
         {% for k in contract.key %}{{ identifier(k) }} as _key_{{ loop.index }}, {% endfor %}
         {{- unprefixed(our, ['valid_from_seq']) }},
         {{ unprefixed(our, ['valid_to_seq']) if table == 'past' else 'cast(null as string) as valid_to_seq' }},
         named_struct({% for c in contract.columns -%}
           {{ text_literal(c.name) }}, {{ identifier(c.name) }}{{ ', ' if not loop.last }}
         {%- endfor %}) as image,
         {{ unprefixed(our, ['not_supplied', 'conflict'] + lineage()) }}
  from {{ '(select * from %s.%s__%s where false)' % (target.schema, name, table)
       if batch.is_first else batch.touched_rows if table == 'current' and batch.get('touched_rows')
       else '%s.%s__%s' % (target.schema, name, table) }} c
  where {{ condition }}
{%- endmacro %}


{# The same of past, those alone that ended where a batch rewinds to, or later. -#}
{% macro rewound_versions_of(name, batch) -%}
{{ versions_of(name, batch, 'past', "c.%s >= '%s'" % (ours(contract(name)).valid_to_seq, batch.rewind_seq)) }}
{%- endmacro %}

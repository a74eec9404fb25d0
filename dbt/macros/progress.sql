{# Where a table stands, one row per source that is behind the ledger: {source, applied_batch_id, applied_change_seq,
   through_batch_id}. #}
{% macro progress(name) -%}
  {%- set state, tables, through, lagging = gold_state(), contract(name).tables, {}, [] -%}
  {%- for (of_table, source), batch_id in state.whole.items() if of_table in tables -%}
    {%- do through.update({source: [batch_id, through.get(source, -1)] | max}) -%}
  {%- endfor -%}
  {%- for source, through_batch_id in through.items() -%}
    {%- set applied = state.applied.get((name, source), {'batch_id': -1, 'change_seq': none}) -%}
    {%- if through_batch_id > applied.batch_id -%}
      {%- do lagging.append({'source': source, 'applied_batch_id': applied.batch_id,
                         'applied_change_seq': applied.change_seq,
                            'through_batch_id': through_batch_id}) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(lagging | sort(attribute='source')) }}
{%- endmacro %}

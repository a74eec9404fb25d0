{# Fold a batch into `<t>__folded`: closed and open versions, and how far they come. From here on the batch is fixed:
   what follows only copies, so a run that dies is finished by the next one. -#}
{% macro stage(name, batch) -%}
  {%- if name ~ '__folded' not in gold_tables(name) %}{% do create_staging(name, 'folded') %}{% endif -%}
  {%- set small, our = gold_state().small.get(name), ours(contract(name)) -%}
  {%- set is_whole = small and small.is_whole and (small.is_past_whole or not batch.has_rewind) -%}
  {%- set is_read = small and not small.is_whole and not batch.has_rewind and not batch.has_wipe
                    and adapter.small_batches.new_changes(name) is not none -%}
  {%- do batch.update({'is_small': is_whole or is_read}) -%}
  {%- do small_query_settings(is_read) -%}
  {%- if is_read -%}
    {%- do batch.update({'touched_rows': adapter.small_batches.touched_rows(name, our.source, contract(name).key,
                                                                            batch.sources)}) -%}
  {%- endif -%}
  {%- do fold_into(name, batch, 'folded') -%}
  {%- do gold_state().staged.update({name: batch}) -%}
{%- endmacro %}


{# A batch of plain changes is one query; where a step is read several times, it is kept. In: the table's last word, as
   in `folded`. -#}
{% macro fold_into(name, batch, table) -%}
  {%- set kept = [batch.progress] if batch.progress else [] -%}
  {%- set entries_query = entries(name, batch) -%}
  {%- set touched_query = touched(name, batch, entries_query) -%}
  {%- if batch.has_rewind or batch.has_wipe -%}
    {%- do kept.append(keep(name, 'touched', touched_query)) -%}
    {%- set touched_query = 'select * from ' ~ kept[-1] -%}
  {%- endif -%}
  {%- set timeline_query, threads_query = timeline(name, batch, entries_query, touched_query), none -%}
  {%- if batch.has_key_change -%}
    {%- do kept.append(keep(name, 'timeline', timeline_query)) -%}
    {%- set timeline_query = 'select * from ' ~ kept[-1] -%}
    {%- set threads_query = threads(name, kept, batch.has_partial) -%}
  {%- endif -%}
  {%- set staged = target.schema ~ '.' ~ name ~ '__' ~ table -%}
  {%- set query = fold(name, batch, timeline_query, threads_query) -%}
  {%- if batch.is_small -%}
    {%- do adapter.small_batches.stage(name, query) -%}
  {%- else -%}
    {% call statement('stage') %}insert overwrite table {{ staged }} {{ query }}{% endcall %}
  {%- endif -%}
  {%- for table in kept %}{% do run_query('drop table ' ~ table) %}{% endfor -%}
{%- endmacro %}

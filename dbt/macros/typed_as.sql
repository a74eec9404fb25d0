{# Changes of one version of a table, under gold's names and types. A column that the version did not have is null, and
   no change leaves it open. In: a version of the contract. -#}
{% macro typed_as(contract, version) -%}
{%- set columns, members = version.columns, {} -%}
{%- for c in columns if c.name %}{% do members.update({c.name: c}) %}{% endfor -%}
select source, change_seq, operation, change_oper,
       {{ image_of('b', columns, contract.columns) }} as before,
       {{ image_of('a', columns, contract.columns) }} as after,
       coalesce(masked, differing, array()) as changed,
       if(equal is null, array(),
          array_union(array_except(differing, masked), array_intersect(masked, equal))) as mask_conflicts,
       not_supplied, key_changed,
       transaction_id, transaction_event_counter, transaction_last_event, change_timestamp, load_id, table_version,
       column_states, unit_id, unit_offset, batch_id
from (
  select *,
         if(change_mask is not null, {{ changed_by_mask(columns) }}, null) as masked,
         if(has_row and before is not null,
            array_intersect(array_intersect(unlike, before_supplies), after_supplies), null) as differing,
         if(change_mask is not null and is_update and before is not null,
            array_except(array_intersect(array_intersect({{ names_of(columns) }}, before_supplies), after_supplies),
                         unlike), null) as equal,
         if(has_row, array_except({{ names_of(columns) }}, after_supplies),
            cast(array() as array<string>)) as not_supplied,
         is_update and ({% for k in contract.key if k in members -%}
           {{ comparable('b', members[k]) }} <> {{ comparable('a', members[k]) }} or {% endfor -%}
         false) is true as key_changed
  from (
    select *, if(before is not null and after is not null, {{ unlike(columns) }}, null) as unlike,
           if(before is not null and after is not null, {{ supplied('b', 'before', columns) }},
              null) as before_supplies,
           if(has_row, {{ supplied('a', 'after', columns) }}, null) as after_supplies
    from (
      select *, {{ members_of('before', 'after', columns) }} as b,
             {{ members_of('after', 'before', columns) }} as a,
             rpad(hex(change_mask), {{ 2 * ((columns | length + 7) // 8) }}, '0') as mask
      from changes{{ ' where table_version = %d' % version.version if contract.versions | length > 1 }}
    )
  )
)
{%- endmacro %}

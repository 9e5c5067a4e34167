package ask

import (
	"context"
	"fmt"
	"time"

	"github.com/musterd/muster/resource"
)

// Wait is how long units waited in a queue, of those that began to run in a period.
type Wait struct {
	Queue        string
	Units        int64
	Average, P99 time.Duration // from the creation to the first commit; P99 is that of a unit
}

// Waits answers by queue, ascending, about the units within the scope that began to run
// within from..to.
func (h *History) Waits(ctx context.Context, scope Scope, from, to time.Time) ([]Wait, error) {
	where, args := scope.where("tenant_id", "namespace", []any{h.instant(from), h.instant(to)})
	query := fmt.Sprintf(`SELECT queue, count(*), sum(ms) / count(*), min(ms) FILTER (WHERE place * 100 >= 99 * units) FROM (
		SELECT queue, ms, row_number() OVER (PARTITION BY queue ORDER BY ms) AS place, count(*) OVER (PARTITION BY queue) AS units FROM (
			SELECT queue, {ms}scheduled_at - created_at{/ms} AS ms FROM allocations
			WHERE scheduled_at >= $1 AND scheduled_at < $2 AND created_at IS NOT NULL AND reverted = 0 AND %s) AS waited) AS placed
		GROUP BY queue ORDER BY queue`, where)
	var waits []Wait
	err := h.each(ctx, query, func(scan func(...any) error) error {
		var w Wait
		var average float64
		var p99 int64
		if err := scan(&w.Queue, &w.Units, &average, &p99); err != nil {
			return err
		}
		w.Average, w.P99 = max(0, time.Duration(average))*time.Millisecond, max(0, time.Duration(p99))*time.Millisecond
		waits = append(waits, w)
		return nil
	}, args...)
	if err != nil {
		return nil, fmt.Errorf("waits of queues: %w", err)
	}
	return waits, nil
}

// Held is what a namespace held at an instant.
type Held struct {
	At   time.Time
	Held resource.Vector
	// Hard are the limits of the quota at the instant, of those that it had.
	Hard resource.Vector
}

// Held answers with the amounts that the members of a namespace held at an instant, beside
// the limits that a resource quota had then. counts says which work the quota counts, by its
// priority class and by whether the time that it runs has a limit; nil is all. Where the tenant's history begins later, the
// answer is about the end of its first hour; known is false where it has none before `at`'s
// next hour.
func (h *History) Held(ctx context.Context, tenant resource.TenantID, namespace, quota string, counts func(class string, limited bool) bool, at time.Time) (answer Held, known bool, err error) {
	var first time.Time
	if err := h.each(ctx, "SELECT min(hour_start) FROM usage_tenant_hourly WHERE tenant_id = $1", func(scan func(...any) error) error {
		return scan(stamp{&first})
	}, string(tenant)); err != nil {
		return Held{}, false, fmt.Errorf("beginning of the history of tenant %s: %w", tenant, err)
	}
	if first.IsZero() {
		return Held{}, false, nil
	}
	if end := first.Add(time.Hour); at.Before(end) {
		at = end
	}
	answer = Held{At: at, Held: resource.Vector{}, Hard: resource.Vector{}}
	take := func(into resource.Vector) func(scan func(...any) error) error {
		return func(scan func(...any) error) error {
			var slot resource.Name
			var text string
			err := scan(&slot, &text)
			if err == nil {
				into[slot], err = h.amount(slot, text)
			}
			return err
		}
	}
	// A slice never crosses a full hour.
	if err := h.each(ctx, `SELECT coalesce(a.priority_class, ''), coalesce(a.time_limited, {false}), s.slot_name, CAST(sum(s.allocated) AS TEXT)
		FROM usage_slices s LEFT JOIN allocations a ON a.allocation_id = s.allocation_id AND a.reverted = 0
		WHERE s.tenant_id = $1 AND s.namespace = $2 AND s.from_at >= $3 AND s.from_at <= $4 AND s.to_at > $4 AND s.reverted = 0
		GROUP BY a.priority_class, a.time_limited, s.slot_name`,
		func(scan func(...any) error) error {
			var class, text string
			var limited bool
			var slot resource.Name
			if err := scan(&class, &limited, &slot, &text); err != nil || counts != nil && !counts(class, limited) {
				return err
			}
			amount, err := h.amount(slot, text)
			answer.Held[slot] = resource.SaturatingAdd(answer.Held[slot], amount)
			return err
		}, string(tenant), namespace, h.instant(at.UTC().Truncate(time.Hour)), h.instant(at)); err != nil {
		return Held{}, false, fmt.Errorf("slices of namespace %s: %w", namespace, err)
	}
	if err := h.each(ctx, `SELECT resource_type, CAST(hard_limit AS TEXT) FROM resource_quotas
		WHERE namespace = $1 AND quota_name = $2 AND from_at <= $3 AND (to_at IS NULL OR to_at > $3) AND hard_limit IS NOT NULL AND reverted = 0`,
		take(answer.Hard), namespace, quota, h.instant(at)); err != nil {
		return Held{}, false, fmt.Errorf("past limits of quota %s/%s: %w", namespace, quota, err)
	}
	return answer, true, nil
}

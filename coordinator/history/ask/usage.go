package ask

import (
	"context"
	"fmt"
	"time"

	"github.com/musterd/muster/resource"
)

// Tenant is the usage of a tenant within From..To.
type Tenant struct {
	From, To time.Time
	Slots    map[resource.Name]Slot
	// Costs are those of the slots that have a price, in Currency; "" where there is no
	// price list.
	Currency string
	Costs    map[resource.Name]Cost
}

// Slot is the use of one slot by all members of a tenant together.
type Slot struct {
	Peak    int64 // base units
	Average int64 // base units, rounded down
}

// Tenant answers with peaks, averages and costs of the hours within from..to. from is
// rounded down to the full hour. The average is over the time up to `to`, or to the end of
// the history where that is earlier.
func (h *History) Tenant(ctx context.Context, tenant resource.TenantID, from, to time.Time) (Tenant, error) {
	from = from.UTC().Truncate(time.Hour)
	answer := Tenant{From: from, To: to, Slots: map[resource.Name]Slot{}, Costs: map[resource.Name]Cost{}}
	if err := h.peaks(ctx, tenant, &answer); err != nil {
		return Tenant{}, fmt.Errorf("usage of tenant %s: %w", tenant, err)
	}
	if err := h.costs(ctx, tenant, &answer); err != nil {
		return Tenant{}, fmt.Errorf("costs of tenant %s: %w", tenant, err)
	}
	return answer, nil
}

func (h *History) peaks(ctx context.Context, tenant resource.TenantID, answer *Tenant) error {
	duration := answer.To.Sub(answer.From).Milliseconds()
	if duration <= 0 {
		return fmt.Errorf("%s is not before %s", answer.From.Format(time.RFC3339), answer.To.Format(time.RFC3339))
	}
	divisor := duration // SQLite's integrals are of milliseconds
	query := `SELECT slot_name, CAST(max(max_usage) AS TEXT), decimal_div(decimal_sum(total_allocated), $4, 6)
		FROM usage_tenant_hourly WHERE tenant_id = $1 AND hour_start >= $2 AND hour_start < $3 GROUP BY slot_name`
	if h.postgres {
		query = `SELECT slot_name, max(max_usage)::text, trunc(sum(total_allocated) * 1000 / $4::bigint, 6)::text
		FROM usage_tenant_hourly WHERE tenant_id = $1 AND hour_start >= $2 AND hour_start < $3 GROUP BY slot_name`
	}
	return h.each(ctx, query, func(scan func(...any) error) error {
		var slot resource.Name
		var peak, average string
		if err := scan(&slot, &peak, &average); err != nil {
			return err
		}
		var s Slot
		var err error
		if s.Peak, err = h.amount(slot, peak); err != nil {
			return err
		}
		if s.Average, err = h.amount(slot, average); err != nil {
			return err
		}
		answer.Slots[slot] = s
		return nil
	}, string(tenant), h.instant(answer.From), h.instant(answer.To), divisor)
}

// costs adds whole days from usage_daily and the hours before the first and behind the
// last whole day from usage_hourly, so that a year is 365 rows of a slot and not 8,760.
func (h *History) costs(ctx context.Context, tenant resource.TenantID, answer *Tenant) error {
	if err := h.each(ctx, "SELECT coalesce(max(currency), '') FROM usage_prices", func(scan func(...any) error) error {
		return scan(&answer.Currency)
	}); err != nil || answer.Currency == "" {
		return err
	}
	first, last := wholeDays(answer.From, answer.To)
	return h.each(ctx, `SELECT slot_name, CAST(sum(cost) AS TEXT) FROM (
			SELECT slot_name, cost_units AS cost FROM usage_daily WHERE tenant_id = $1 AND day_start >= $3 AND day_start < $4
			UNION ALL SELECT slot_name, cost_units FROM usage_hourly WHERE tenant_id = $1 AND hour_start >= $2 AND hour_start < $3
			UNION ALL SELECT slot_name, cost_units FROM usage_hourly WHERE tenant_id = $1 AND hour_start >= $4 AND hour_start < $5
		) AS costs WHERE slot_name IN (SELECT slot_name FROM usage_prices) GROUP BY slot_name`,
		func(scan func(...any) error) error {
			var slot resource.Name
			var text string
			if err := scan(&slot, &text); err != nil {
				return err
			}
			cost, err := h.cost(text)
			answer.Costs[slot] = cost
			return err
		}, string(tenant), h.instant(answer.From), h.instant(first), h.instant(last), h.instant(answer.To))
}

// wholeDays are the bounds of the days (UTC) that lie within from..to; both are to where
// none does.
func wholeDays(from, to time.Time) (first, last time.Time) {
	const day = 24 * time.Hour
	first, last = from.UTC().Truncate(day), to.UTC().Truncate(day)
	if first.Before(from) {
		first = first.Add(day)
	}
	if !first.Before(last) {
		return to, to
	}
	return first, last
}

// Point is an interval of a plot.
type Point struct {
	At            time.Time
	Peak, Average int64 // base units
}

// Series are the hours or days of a tenant's slot within from..to, ascending; hours in
// which nothing was held are absent. step is an hour or a day.
func (h *History) Series(ctx context.Context, tenant resource.TenantID, slot resource.Name, from, to time.Time, step time.Duration) ([]Point, error) {
	bucket, width := "hour_start", "3600"
	if step != time.Hour {
		bucket, width = "date_trunc('day', hour_start)", "86400"
	}
	query := fmt.Sprintf(`SELECT %s AS bucket, max(max_usage)::text, trunc(sum(total_allocated) / %s, 6)::text FROM usage_tenant_hourly
		WHERE tenant_id = $1 AND slot_name = $2 AND hour_start >= $3 AND hour_start < $4 GROUP BY bucket ORDER BY bucket`, bucket, width)
	if !h.postgres {
		bucket = "hour_start"
		if step != time.Hour {
			bucket = "hour_start / 86400000 * 86400000"
		}
		query = fmt.Sprintf(`SELECT %s AS bucket, CAST(max(max_usage) AS TEXT), decimal_div(decimal_sum(total_allocated), %s000, 6) FROM usage_tenant_hourly
		WHERE tenant_id = $1 AND slot_name = $2 AND hour_start >= $3 AND hour_start < $4 GROUP BY bucket ORDER BY bucket`, bucket, width)
	}
	var points []Point
	err := h.each(ctx, query, func(scan func(...any) error) error {
		var p Point
		var peak, average string
		err := scan(stamp{&p.At}, &peak, &average)
		if err == nil {
			p.Peak, err = h.amount(slot, peak)
		}
		if err == nil {
			p.Average, err = h.amount(slot, average)
		}
		points = append(points, p)
		return err
	}, string(tenant), string(slot), h.instant(from), h.instant(to))
	if err != nil {
		return nil, fmt.Errorf("hours of %s of tenant %s: %w", slot, tenant, err)
	}
	return points, nil
}

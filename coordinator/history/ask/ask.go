// Package ask answers questions about the past from the history's tables: the usage of a
// tenant with its peaks and its cost, the waits of queues, the trend of a quota, and
// lists of allocations, preemptions and events. Each answer is SQL GROUP BY over both
// databases; no answer adds up rows in Go.
//
// It decides no rights: its callers pass the Scope that coordinator/service has judged.
// Rows of a restore that took them back (reverted) are in no answer.
package ask

import (
	"context"
	"database/sql"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/resource"
)

// timeout bounds one answer.
const timeout = 10 * time.Second

// History answers from one database. Its methods may be called from any goroutine and
// block on the database for 10 s at most.
type History struct {
	db       *sql.DB
	postgres bool
}

// Of answers from an open history.
func Of(w *warehouse.Warehouse) *History {
	return &History{w.SQL(), w.Dialect() == warehouse.Postgres}
}

// instant is an instant as a parameter of a query.
func (h *History) instant(t time.Time) any {
	if h.postgres {
		return t.UTC()
	}
	return t.UnixMilli()
}

// stamp reads a column of instants; NULL is the zero Time.
type stamp struct{ to *time.Time }

// Scan implements sql.Scanner.
func (s stamp) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*s.to = time.Time{}
	case time.Time:
		*s.to = v.UTC()
	case int64:
		*s.to = time.UnixMilli(v).UTC()
	default:
		return fmt.Errorf("an instant of type %T", value)
	}
	return nil
}

// parameters are numbered as PostgreSQL writes them.
var parameters = regexp.MustCompile(`\$(\d+)`)

// text is a query in the database's words. {seconds:X} is a duration in seconds as a
// number, {json:A,B} an object of rows, {year} and the like are in words.
func (h *History) text(query string) string {
	if h.postgres {
		return strings.NewReplacer("{object}", "json_object_agg", "{ms}", "(extract(epoch FROM ", "{/ms}", ") * 1000)::bigint", "{false}", "false").Replace(query)
	}
	query = strings.NewReplacer("{object}", "json_group_object", "{ms}", "(", "{/ms}", ")", "{false}", "0").Replace(query)
	return parameters.ReplaceAllString(query, "?$1")
}

// each runs a query and takes its rows one after the other.
func (h *History) each(ctx context.Context, query string, take func(scan func(...any) error) error, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	rows, err := h.db.QueryContext(ctx, h.text(query), args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := take(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// amount reads an amount as text: units in PostgreSQL, base units in SQLite. It returns
// base units, rounded down, at most resource.Unlimited.
func (h *History) amount(slot resource.Name, text string) (int64, error) {
	n, err := h.exact(slot, text)
	if err != nil {
		return 0, err
	}
	whole := new(big.Int).Quo(n.Num(), n.Denom())
	if !whole.IsInt64() {
		return resource.Unlimited, nil
	}
	return whole.Int64(), nil
}

// exact is as amount, without rounding.
func (h *History) exact(slot resource.Name, text string) (*big.Rat, error) {
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, fmt.Errorf("%s: amount %q of the history is no number", slot, text)
	}
	if h.postgres {
		n.Mul(n, new(big.Rat).SetInt64(slot.Scale()))
	}
	return n, nil
}

// Cost is money in hundredths of a cent.
type Cost int64

// cost reads a sum of costs: units of the currency in PostgreSQL, hundredths of a cent in
// SQLite.
func (h *History) cost(text string) (Cost, error) {
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, fmt.Errorf("cost %q of the history is no number", text)
	}
	if h.postgres {
		n.Mul(n, big.NewRat(10_000, 1))
	}
	whole := new(big.Int).Quo(n.Num(), n.Denom())
	if !whole.IsInt64() {
		return Cost(resource.Unlimited), nil
	}
	return Cost(whole.Int64()), nil
}

// Scope is the work that an answer may be about: all, or that of namespaces of tenants.
// The zero value is no work.
type Scope struct {
	All     bool
	Tenants []TenantScope
}

// TenantScope are namespaces of a tenant; nil is all of them.
type TenantScope struct {
	Tenant     resource.TenantID
	Namespaces []string
}

// where is a condition on the columns tenant_id and namespace, and its parameters behind
// those that there are.
func (s Scope) where(tenantColumn, namespaceColumn string, args []any) (string, []any) {
	if s.All {
		return "1 = 1", args
	}
	if len(s.Tenants) == 0 {
		return "1 = 0", args
	}
	var parts []string // of a single one there is no OR, for which SQLite reads no index
	for _, t := range s.Tenants {
		args = append(args, string(t.Tenant))
		part := fmt.Sprintf("%s = $%d", tenantColumn, len(args))
		if t.Namespaces != nil {
			marks := make([]string, len(t.Namespaces))
			for i, n := range t.Namespaces {
				args = append(args, n)
				marks[i] = fmt.Sprintf("$%d", len(args))
			}
			part += fmt.Sprintf(" AND %s IN (%s)", namespaceColumn, strings.Join(append(marks, "NULL"), ", "))
		}
		parts = append(parts, "("+part+")")
	}
	return "(" + strings.Join(parts, " OR ") + ")", args
}

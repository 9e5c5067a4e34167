package charges

import (
	"time"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/window"
	"github.com/musterd/muster/resource"
)

// The history of a tenant's usage.
const (
	usageSlots = 97 // 24 h, and the slot that is not over
	usageWidth = 15 * time.Minute
	// mostLevels bounds the resources of tenants that have a history: 2.4 KiB each.
	mostLevels = 4096
)

// usage is the amount of each resource that is charged to each tenant, with its
// history since the term began.
//
// Invariant: the value of a level is the sum over the transactions that limits
// Charge to the tenant's namespaces.
type usage struct {
	began   time.Time
	tenants map[resource.TenantID]map[resource.Name]*level
	kept    int // levels with a history
	// charged counts the transactions that are charged, by tenant and namespace.
	charged map[resource.TenantID]map[string]int
}

// level is one resource of one tenant; past is nil where there is no room for a
// history.
type level struct {
	value int64
	past  *window.Level
}

func newUsage(began time.Time) usage {
	return usage{began: began, tenants: map[resource.TenantID]map[resource.Name]*level{}, charged: map[resource.TenantID]map[string]int{}}
}

// add changes a tenant's usage by a charge, times 1 or -1.
func (u *usage) add(now time.Time, tenant resource.TenantID, c quota.Charge, times int64) {
	if u.charged[tenant] == nil {
		u.charged[tenant] = map[string]int{}
	}
	if u.charged[tenant][c.Group] += int(times); u.charged[tenant][c.Group] == 0 {
		delete(u.charged[tenant], c.Group)
	}
	for name, amount := range c.Request {
		u.level(tenant, name).add(now, times*amount)
	}
	if c.Members > 0 {
		u.level(tenant, resource.Pods).add(now, times*c.Members)
	}
}

func (u *usage) level(tenant resource.TenantID, name resource.Name) *level {
	of := u.tenants[tenant]
	if of == nil {
		of = map[resource.Name]*level{}
		u.tenants[tenant] = of
	}
	l := of[name]
	if l == nil {
		l = &level{}
		if u.kept < mostLevels {
			u.kept++
			l.past = window.NewLevel(u.began, usageSlots, usageWidth)
		}
		of[name] = l
	}
	return l
}

func (l *level) add(now time.Time, amount int64) {
	l.value = resource.SaturatingAdd(l.value, amount)
	if l.past != nil {
		l.past.Set(now, l.value)
	}
}

// forgetIdle forgets the tenants' resources that were 0 for as long as a history
// goes back.
func (u *usage) forgetIdle(now time.Time) {
	for tenant, of := range u.tenants {
		for name, l := range of {
			if l.value != 0 || l.past != nil && !l.past.IsIdle(now) {
				continue
			}
			if l.past != nil {
				u.kept--
			}
			delete(of, name)
		}
		if len(of) == 0 {
			delete(u.tenants, tenant)
			delete(u.charged, tenant)
		}
	}
}

// Charge charges a transaction of a tenant, unless it is charged already.
func (q *Book) Charge(tx resource.TxID, tenant resource.TenantID, c quota.Charge, now time.Time) {
	if _, charged := q.limits.Charged(tx); !charged {
		q.limits.Charge(tx, c)
		q.reserved.Charge(tx, c)
		q.usage.add(now, tenant, c, 1)
	}
}

// Start notes that the unit of a transaction has started: the charge stays, and is reserved no
// more.
func (q *Book) Start(tx resource.TxID) { q.reserved.Discharge(tx) }

// Uncharge ends the charge of a transaction of a tenant, where there is one.
func (q *Book) Uncharge(tx resource.TxID, tenant resource.TenantID, now time.Time) {
	if c, charged := q.limits.Charged(tx); charged {
		q.limits.Discharge(tx)
		q.reserved.Discharge(tx)
		q.usage.add(now, tenant, c, -1)
	}
}

package lead

import (
	"cmp"
	"fmt"

	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/why"
	"github.com/musterd/muster/resource"
)

// spaces is the state of namespaces beside their objects.
type spaces struct {
	// configured: the namespaces of the configuration have become objects, and
	// the configuration has no say in them any more.
	configured bool
	// paused are the submissions to a namespace whose owner is being changed, or
	// whose object is being deleted. They go on when the change has its outcome.
	paused map[string][]func()
}

func newSpaces() *spaces { return &spaces{paused: map[string][]func(){}} }

// loadObjects takes the objects of the kinds that package edit judges.
func (v *view) loadObjects(kvs, configured []record.KV) error {
	for _, kv := range kvs {
		if mine, err := v.objects.Load(kv); err != nil {
			return err
		} else if !mine {
			return fmt.Errorf("%s: the key is of no kind", kv.Key)
		}
	}
	v.spaces.configured = len(configured) > 0
	return nil
}

// namespace returns the owner of a namespace and the rules for its work. Without an
// object the owner is the tenant of its name, and no rule is set. Until the
// namespaces of the configuration are objects, the configuration counts.
func (l *Leader) namespace(name string) Namespace {
	var n Namespace
	if k := l.objects.Namespaces.Get(name); k != nil {
		n = ruleOf(&k.Object.Spec)
	} else if !l.spaces.configured {
		n = l.rules.Namespaces[name]
	}
	n.Tenant = cmp.Or(n.Tenant, resource.TenantID(name))
	return n
}

// isKnown reports whether a namespace has an object, or is about to get one.
func (l *Leader) isKnown(name string) bool {
	_, configured := l.rules.Namespaces[name]
	return l.objects.Namespaces.Get(name) != nil || configured && !l.spaces.configured
}

// evictsOnLoss reports whether a unit of a namespace that holds a lost device is
// evicted. The namespace's rule wins over the configuration's.
func (l *Leader) evictsOnLoss(namespace string) bool {
	switch l.namespace(namespace).DeviceLost {
	case "evict":
		return true
	case "keep":
		return false
	}
	return l.rules.EvictOnDeviceLost
}

// pauseWork has submissions to a namespace wait until a change of its owner, or its
// deletion, has its outcome: no unit is charged to an owner that is about to go.
func (l *Leader) pauseWork(namespace string, w edit.Write) edit.Write {
	landed := w.Landed
	l.spaces.paused[namespace] = []func(){}
	w.Landed = func(rev resource.Revision) {
		landed(rev)
		l.resumeWork(namespace)
	}
	w.Failed = func() { l.resumeWork(namespace) }
	return w
}

func (l *Leader) resumeWork(namespace string) {
	waiting := l.spaces.paused[namespace]
	delete(l.spaces.paused, namespace)
	for _, serve := range waiting {
		serve()
	}
}

// isPaused has a submission go on later, where its namespace is being changed.
func (l *Leader) isPaused(c *desk.Call, namespace string, serve func()) bool {
	waiting, paused := l.spaces.paused[namespace]
	if paused {
		l.spaces.paused[namespace] = append(waiting, func() {
			if !c.IsOver() {
				defer c.Act()() // not for the caller of the change
				serve()
			}
		})
	}
	return paused
}

// viewer is the one who asks about a unit: operators see all, everybody else the
// work of the unit's tenant.
func (l *Leader) viewer(u *work.Unit, asked Asked) why.Viewer {
	return l.reader(asked.Operator, l.namespace(u.Record.Namespace).Tenant)
}

// reader is a caller of a tenant, or an operator.
func (l *Leader) reader(operator bool, tenant resource.TenantID) why.Viewer {
	return why.Viewer{Operator: operator, Owns: func(namespace string) bool { return l.namespace(namespace).Tenant == tenant }}
}

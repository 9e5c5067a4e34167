package record_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

func Example() {
	unit := record.UnitPath{Namespace: "ml/research", Kind: record.JobUnit, Name: "train", N: 0}
	fmt.Println(unit.Key())
	for _, priority := range []int32{100, 0, -1} {
		fmt.Println(record.OrderKey{Queue: "default", Priority: priority, Sequence: record.Sequence{Epoch: 7, Counter: 12}, Unit: unit}.Key())
	}
	fmt.Println(record.NodeTxKey("gpu-01", resource.NewTxID("u1", 7, 3, resource.Nonce{})))
	// Output:
	// /registry/units/ml%2Fresearch/job/train/0
	// /registry/order/default/7fffff9b/0000000000000007.000000000000000c/ml%2Fresearch/job/train/0
	// /registry/order/default/7fffffff/0000000000000007.000000000000000c/ml%2Fresearch/job/train/0
	// /registry/order/default/80000000/0000000000000007.000000000000000c/ml%2Fresearch/job/train/0
	// /registry/nodes/gpu-01/tx/u1.7.3.00000000000000000000000000000000
}

func TestKeys(t *testing.T) {
	cases := map[string]struct{ got, want string }{
		"a job":                 {record.JobKey("team a", "train"), "/registry/jobs/team%20a/train"},
		"a unit":                {record.UnitPath{Namespace: "a", Kind: record.AllocUnit, Name: "x", N: 12}.Key(), "/registry/units/a/alloc/x/12"},
		"a request":             {record.RequestKey("t", "id/ü"), "/registry/requests/t/id%2F%C3%BC"},
		"a transaction":         {record.TxKey("u.1.2.ff"), "/registry/tx/u.1.2.ff"},
		"a node's identity":     {record.NodeIdentityKey("n"), "/registry/nodes/n/identity"},
		"a node's spec":         {record.NodeSpecKey("n"), "/registry/nodes/n/spec"},
		"a node's status":       {record.NodeStatusKey("n"), "/registry/nodes/n/status"},
		"a node's lease":        {record.NodeLeaseKey("n"), "/registry/nodes/n/lease"},
		"a node's transactions": {record.NodeTxIn("n"), "/registry/nodes/n/tx/"},
		"a namespace's limit":   {record.QuotaKey{Kind: record.QuotaLimits, Name: "a"}.Key(), "/registry/quota/limits/a"},
		"the mode of trees":     {record.QuotaModeKey, "/registry/quota/mode/cluster"},
		"a quota tree":          {record.QuotaKey{Kind: record.QuotaTrees, Name: "a/b"}.Key(), "/registry/quota/trees/a%2Fb"},
		"a resource quota":      {record.QuotaKey{Kind: record.QuotaResources, Namespace: "a", Name: "b"}.Key(), "/registry/quota/resourcequotas/a/b"},
		"a tenant":              {record.NamedKey(record.TenantsPrefix, "a"), "/registry/tenants/a"},
		"a namespace":           {record.NamedKey(record.NamespacesPrefix, "a"), "/registry/namespaces/a"},
		"a leader":              {record.LeaderKey(255), "/registry/leader/00000000000000ff"},
		"an empty segment":      {record.JobKey("", "x"), "/registry/jobs/%/x"},
		"the unreserved bytes":  {record.TxKey("azAZ09-_.~"), "/registry/tx/azAZ09-_.~"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("got %q, want %q", c.got, c.want)
			}
		})
	}
}

// name draws segments, often with bytes that need escaping or sort oddly.
func name(t *rapid.T, label string) string {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", "a", "a-b", "a.b", "a/b", "a b", "%", "%41", "tx", "ä", "~", "\x00", "\xff"}),
		rapid.String(),
	).Draw(t, label)
}

func unitPath(t *rapid.T) record.UnitPath {
	return record.UnitPath{
		Namespace: name(t, "namespace"),
		Kind:      rapid.SampledFrom([]record.UnitKind{record.AllocUnit, record.JobUnit}).Draw(t, "kind"),
		Name:      name(t, "name"),
		N:         rapid.IntRange(0, 1<<20).Draw(t, "n"),
	}
}

func orderKey(t *rapid.T) record.OrderKey {
	small := rapid.Uint64Range(0, 3)
	return record.OrderKey{
		Queue:    name(t, "queue"),
		Priority: rapid.OneOf(rapid.Int32Range(-2, 2), rapid.Int32()).Draw(t, "priority"),
		Sequence: record.Sequence{
			Epoch:   resource.Epoch(rapid.OneOf(small, rapid.Uint64Range(0, 1<<63-1)).Draw(t, "epoch")),
			Counter: rapid.OneOf(small, rapid.Uint64()).Draw(t, "counter"),
		},
		Unit: unitPath(t),
	}
}

func TestParsersInvertBuilders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := name(t, "a"), name(t, "b")
		unit, order := unitPath(t), orderKey(t)
		same := func(what string, err error, ok bool) {
			if err != nil || !ok {
				t.Fatalf("%s of %q, %q: %v, %v", what, a, b, ok, err)
			}
		}
		ns, n, err := record.ParseJobKey(record.JobKey(a, b))
		same("job", err, ns == a && n == b)
		tenant, id, err := record.ParseRequestKey(record.RequestKey(resource.TenantID(a), b))
		same("request", err, string(tenant) == a && id == b)
		tenantName, err := record.ParseTenantKey(record.NamedKey(record.TenantsPrefix, a))
		same("tenant", err, tenantName == a)
		namespaceName, err := record.ParseNamespaceKey(record.NamedKey(record.NamespacesPrefix, a))
		same("namespace", err, namespaceName == a)
		tx, err := record.ParseTxKey(record.TxKey(resource.TxID(a)))
		same("tx", err, string(tx) == a)
		node := resource.NodeID(a)
		for key, want := range map[string]record.NodeKey{
			record.NodeIdentityKey(node):             {ID: node, Part: record.NodeIdentityPart},
			record.NodeSpecKey(node):                 {ID: node, Part: record.NodeSpecPart},
			record.NodeStatusKey(node):               {ID: node, Part: record.NodeStatusPart},
			record.NodeLeaseKey(node):                {ID: node, Part: record.NodeLeasePart},
			record.NodeTxKey(node, resource.TxID(b)): {ID: node, Part: record.NodeTxPart, Tx: resource.TxID(b)},
			record.NodeTxIn(node) + "tx":             {ID: node, Part: record.NodeTxPart, Tx: "tx"},
		} {
			got, err := record.ParseNodeKey(key)
			same("node key "+key, err, got == want)
		}
		for _, key := range []record.QuotaKey{
			{Kind: record.QuotaLimits, Name: a},
			{Kind: record.QuotaTrees, Name: a},
			{Kind: record.QuotaModes, Name: a},
			{Kind: record.QuotaForests, Name: a},
			{Kind: record.QuotaNamespaces, Name: a},
			{Kind: record.QuotaResources, Namespace: a, Name: b},
		} {
			got, err := record.ParseQuotaKey(key.Key())
			same("quota", err, got == key)
		}
		gotUnit, err := record.ParseUnitKey(unit.Key())
		same("unit", err, gotUnit == unit)
		gotOrder, err := record.ParseOrderKey(order.Key())
		same("order", err, gotOrder == order)
	})
}

// TestOrderKeysSortByTheOrder compares the bytes of keys with the tuple
// (priority descending, epoch, counter, unit path).
func TestOrderKeysSortByTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := orderKey(t), orderKey(t)
		if rapid.Bool().Draw(t, "same queue") {
			b.Queue = a.Queue
		}
		if rapid.Bool().Draw(t, "same priority") {
			b.Priority = a.Priority
		}
		if rapid.Bool().Draw(t, "same sequence") {
			b.Sequence = a.Sequence
		}
		if got, want := cmp.Compare(a.Key(), b.Key()), a.Compare(b); got != want {
			t.Fatalf("keys %q and %q compare %d, the order says %d", a.Key(), b.Key(), got, want)
		}
		if a.Queue != b.Queue {
			return
		}
		want := cmp.Or(-cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Sequence.Epoch, b.Sequence.Epoch),
			cmp.Compare(a.Sequence.Counter, b.Sequence.Counter), cmp.Compare(a.Unit.String(), b.Unit.String()))
		if got := a.Compare(b); got != want {
			t.Fatalf("%+v and %+v compare %d, want %d", a, b, got, want)
		}
	})
}

func TestOrderOfAQueue(t *testing.T) {
	unit := record.UnitPath{Namespace: "a", Kind: record.AllocUnit, Name: "x"}
	at := func(priority int32, epoch resource.Epoch, counter uint64) string {
		return record.OrderKey{Queue: "q", Priority: priority, Sequence: record.Sequence{Epoch: epoch, Counter: counter}, Unit: unit}.Key()
	}
	want := []string{
		at(1<<31-1, 9, 9), at(1, 1, 0), at(0, 1, 5), at(0, 2, 1), at(0, 2, 2), at(0, 16, 0),
		at(-1, 1, 0), at(-1<<31, 1, 0),
	}
	got := slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestParsersRefuse(t *testing.T) {
	one := func(_ any, err error) error { return err }
	two := func(_, _ any, err error) error { return err }
	job := func(k string) error { a, b, err := record.ParseJobKey(k); return two(a, b, err) }
	unit := func(k string) error { a, err := record.ParseUnitKey(k); return one(a, err) }
	order := func(k string) error { a, err := record.ParseOrderKey(k); return one(a, err) }
	node := func(k string) error { a, err := record.ParseNodeKey(k); return one(a, err) }
	quota := func(k string) error { a, err := record.ParseQuotaKey(k); return one(a, err) }
	cases := map[string]struct {
		parse func(string) error
		key   string
	}{
		"a foreign prefix":               {job, "/elsewhere/jobs/a/b"},
		"too few segments":               {job, "/registry/jobs/a"},
		"too many segments":              {job, "/registry/jobs/a/b/c"},
		"an empty segment":               {job, "/registry/jobs//b"},
		"a raw reserved byte":            {job, "/registry/jobs/a b/c"},
		"a raw byte beside an escape":    {job, "/registry/jobs/%20 b/c"},
		"a lower-case escape":            {job, "/registry/jobs/%2f/c"},
		"an escape that is not needed":   {job, "/registry/jobs/%41/c"},
		"an escape that is cut off":      {job, "/registry/jobs/%2/c"},
		"a unit of another kind":         {unit, "/registry/units/a/pod/x/0"},
		"a unit number with zeros":       {unit, "/registry/units/a/job/x/01"},
		"a negative unit number":         {unit, "/registry/units/a/job/x/-1"},
		"a unit number that overflows":   {unit, "/registry/units/a/job/x/99999999999"},
		"an order key without unit":      {order, "/registry/order/q/7fffffff/0000000000000001.0000000000000001"},
		"a short priority":               {order, "/registry/order/q/7ffffff/0000000000000001.0000000000000001/a/job/x/0"},
		"an upper-case priority":         {order, "/registry/order/q/7FFFFFFF/0000000000000001.0000000000000001/a/job/x/0"},
		"an epoch out of range":          {order, "/registry/order/q/7fffffff/ffffffffffffffff.0000000000000001/a/job/x/0"},
		"a sequence without counter":     {order, "/registry/order/q/7fffffff/0000000000000001/a/job/x/0"},
		"an unknown part of a node":      {node, "/registry/nodes/n/secret"},
		"a node's index without tx":      {node, "/registry/nodes/n/tx"},
		"an unknown part with a segment": {node, "/registry/nodes/n/spec/x"},
		"an unknown kind of quota":       {quota, "/registry/quota/usage/a"},
		"a resource quota of nobody":     {quota, "/registry/quota/resourcequotas/a"},
		"a tree in a namespace":          {quota, "/registry/quota/trees/a/b"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if err := c.parse(c.key); err == nil || !strings.Contains(err.Error(), c.key) {
				t.Errorf("%s: %v, want an error that names the key", c.key, err)
			}
		})
	}
}

func FuzzParseKeys(f *testing.F) {
	f.Add("/registry/order/q/7fffffff/0000000000000001.0000000000000001/a/job/x/0")
	f.Add("/registry/nodes/n%20/tx/u.1.2.ff")
	f.Add("/registry/units/%/alloc/x/0")
	f.Add("/registry/quota/resourcequotas/a/b")
	f.Fuzz(func(t *testing.T, key string) {
		if k, err := record.ParseOrderKey(key); err == nil && k.Key() != key {
			t.Errorf("order key %q is written as %q", key, k.Key())
		}
		if p, err := record.ParseUnitKey(key); err == nil && p.Key() != key {
			t.Errorf("unit key %q is written as %q", key, p.Key())
		}
		if k, err := record.ParseNodeKey(key); err == nil && k.Part == record.NodeTxPart && record.NodeTxKey(k.ID, k.Tx) != key {
			t.Errorf("node key %q is written as %q", key, record.NodeTxKey(k.ID, k.Tx))
		}
		if k, err := record.ParseQuotaKey(key); err == nil && k.Key() != key {
			t.Errorf("quota key %q is written as %q", key, k.Key())
		}
		if ns, n, err := record.ParseJobKey(key); err == nil && record.JobKey(ns, n) != key {
			t.Errorf("job key %q is written as %q", key, record.JobKey(ns, n))
		}
		if tenant, id, err := record.ParseRequestKey(key); err == nil && record.RequestKey(tenant, id) != key {
			t.Errorf("request key %q is written as %q", key, record.RequestKey(tenant, id))
		}
		if name, err := record.ParseNamedKey("resource", key, record.ResourcesPrefix); err == nil && record.NamedKey(record.ResourcesPrefix, name) != key {
			t.Errorf("resource key %q is written as %q", key, record.NamedKey(record.ResourcesPrefix, name))
		}
	})
}

func BenchmarkOrderKey(b *testing.B) {
	k := record.OrderKey{
		Queue: "default", Priority: 5, Sequence: record.Sequence{Epoch: 7, Counter: 9},
		Unit: record.UnitPath{Namespace: "research", Kind: record.AllocUnit, Name: "train-1"},
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := record.ParseOrderKey(k.Key()); err != nil {
			b.Fatal(err)
		}
	}
}

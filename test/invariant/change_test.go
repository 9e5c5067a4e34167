package invariant_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/invariant"
)

func TestDecodeReadsEachKindOfKey(t *testing.T) {
	r := recordOf(grant.RecordCommitted, "u1", "g1")
	u := record.Unit{UID: "u1", Kind: record.AllocUnit, Namespace: "ns", Name: "u1", Tenant: "t", Phase: string(api.Pending), Members: 1}
	who := record.NodeIdentity{Incarnation: incarnation("b1")}
	document := func(scopes ...string) []byte {
		q := api.ResourceQuota{APIVersion: api.APIVersion, Kind: api.KindResourceQuota}
		q.Spec.Hard = map[resource.Name]string{resource.GPU: "2"}
		q.Spec.Scopes = scopes
		text, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		return record.MustEncode(record.Quota{UID: "q", Namespace: "ns", Name: "q", Document: text})
	}
	quotaKey := record.QuotaKey{Kind: record.QuotaResources, Namespace: "ns", Name: "q"}.Key()
	orderKey := u.Order().Key()
	for name, c := range map[string]struct {
		key     string
		value   []byte // nil: deleted
		want    invariant.Change
		refused bool
	}{
		"a record":                        {key: record.TxKey("t1"), value: record.MustEncode(r), want: invariant.Record{Tx: "t1", New: &r}},
		"a record that goes":              {key: record.TxKey("t1"), want: invariant.Record{Tx: "t1"}},
		"a record that cannot be read":    {key: record.TxKey("t1"), value: []byte("{"), refused: true},
		"a unit":                          {key: u.Path().Key(), value: record.MustEncode(u), want: invariant.Unit{Path: u.Path(), New: &u}},
		"a place in the order":            {key: orderKey, value: record.MustEncode(record.Order{UnitUID: "u1"}), want: invariant.Order{Key: orderKey, Path: u.Path(), UID: "u1"}},
		"a place in the order that goes":  {key: orderKey, want: invariant.Order{Key: orderKey, Path: u.Path(), Gone: true}},
		"an entry of an index":            {key: record.NodeTxKey("n1", "t1"), value: record.MustEncode(record.NodeTx{Members: []int{0}}), want: listed("t1")},
		"an entry of an index that goes":  {key: record.NodeTxKey("n1", "t1"), want: unlisted("t1")},
		"an identity":                     {key: record.NodeIdentityKey("n1"), value: record.MustEncode(who), want: invariant.Identity{Node: "n1", New: &who}},
		"an identity that cannot be read": {key: record.NodeIdentityKey("n1"), value: []byte("{"), want: invariant.Identity{Node: "n1"}, refused: true},
		"a node's status":                 {key: record.NodeStatusKey("n1"), value: []byte("{}")},
		"a candidate":                     {key: record.LeaderPrefix + "l", value: []byte("x"), want: invariant.Candidate{Key: record.LeaderPrefix + "l", Epoch: 7}},
		"a resource quota":                {key: quotaKey, value: document(), want: invariant.Quota{Namespace: "ns", Name: "q", Hard: gpus(2)}},
		"a resource quota with scopes":    {key: quotaKey, value: document("BestEffort")},
		"a resource quota that goes":      {key: quotaKey, want: invariant.Quota{Namespace: "ns", Name: "q"}},
		"a tree that cannot be read":      {key: record.QuotaKey{Kind: record.QuotaTrees, Name: "t"}.Key(), value: []byte("{"), refused: true},
		"a tree that goes":                {key: record.QuotaKey{Kind: record.QuotaTrees, Name: "t"}.Key(), want: invariant.Tree{Name: "t"}},
		"the mode of the trees":           {key: record.QuotaModeKey, value: record.MustEncode(record.QuotaMode{UID: "m", Maintenance: true, Since: "now"}), want: invariant.Mode{Maintenance: true}},
		"a mode that goes":                {key: record.QuotaModeKey, want: invariant.Mode{}},
		"a key that nobody knows":         {key: record.Root + "elsewhere", value: []byte("x")},
	} {
		t.Run(name, func(t *testing.T) {
			e := record.Event{KV: record.KV{Key: c.key, Value: c.value, CreateRev: 7, ModRev: 9}}
			if c.value == nil {
				e.Type = record.EventDelete
			}
			b, failed := invariant.Decode(record.Batch{Revision: 9, Events: []record.Event{e}})
			want := invariant.Batch{Revision: 9}
			if c.want != nil {
				want.Changes = []invariant.Change{c.want}
			}
			if diff := cmp.Diff(want, b); diff != "" {
				t.Errorf("changes (-want +have):\n%s", diff)
			}
			if c.refused != (len(failed) == 1) || c.refused && failed[0].Key != c.key {
				t.Errorf("refused %v, want %t", failed, c.refused)
			}
		})
	}
}

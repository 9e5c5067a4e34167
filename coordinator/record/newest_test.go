package record_test

import (
	"testing"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
)

func TestTheNewestInstantOfRecords(t *testing.T) {
	kv := func(value []byte) []record.KV { return []record.KV{{Key: "k", Value: value}} }
	tx := func(r record.Tx) []record.KV {
		r.State, r.Epoch, r.UnitUID, r.Unit = grant.RecordReleased, 1, "u", record.UnitPath{Namespace: "ns", Kind: record.AllocUnit, Name: "a"}
		r.Members = []record.Placement{{Node: "n1"}}
		return kv(record.MustEncode(r))
	}
	for name, c := range map[string]struct {
		lists [][]record.KV
		want  int64
	}{
		"nothing":                    {nil, 0},
		"no instant":                 {[][]record.KV{tx(record.Tx{})}, 0},
		"a commit":                   {[][]record.KV{tx(record.Tx{CommittedMillis: 7})}, 7},
		"an end behind its commit":   {[][]record.KV{tx(record.Tx{CommittedMillis: 7, EndingMillis: 8, EndedMillis: 9})}, 9},
		"a notice":                   {[][]record.KV{tx(record.Tx{CommittedMillis: 7, EndingMillis: 8})}, 8},
		"a wait":                     {[][]record.KV{kv(record.MustEncode(record.Order{UnitUID: "u", Waiting: &record.Waiting{Code: "c", SinceMillis: 11}}))}, 11},
		"all members held":           {[][]record.KV{kv(record.MustEncode(record.Ready{AtMillis: 14}))}, 14},
		"a signal":                   {[][]record.KV{kv(record.MustEncode(record.Ready{AtMillis: 14, SignaledMillis: 15}))}, 15},
		"a node that has freed":      {[][]record.KV{kv(record.MustEncode(record.Ready{AtMillis: 14, Freed: []record.FreedNode{{Node: "n1", AtMillis: 16}, {Node: "n2", AtMillis: 3}}}))}, 16},
		"the newest of several":      {[][]record.KV{append(tx(record.Tx{CommittedMillis: 30}), tx(record.Tx{CommittedMillis: 20})...), tx(record.Tx{CommittedMillis: 10})}, 30},
		"a text that looks like one": {[][]record.KV{tx(record.Tx{CommittedMillis: 7, Reason: `"endedMillis":99`})}, 7},
		"written by hand":            {[][]record.KV{kv([]byte(`{"v": 1, "endedMillis": 12, "x": {"endedMillis": 13}}`))}, 13},
		"no number":                  {[][]record.KV{kv([]byte(`{"endedMillis":"x"}`)), kv([]byte(`{"endedMillis":99999999999999999999}`)), kv([]byte(`{"endedMillis":`))}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := record.NewestInstant(c.lists...); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

package follow

import (
	"fmt"
	"testing"

	"github.com/musterd/muster/coordinator/record"
)

func TestWritten(t *testing.T) {
	sent := func(key string, at int64) record.Op {
		return record.MustPutRecord(key, record.Ready{AtMillis: at})
	}
	brought := func(key string, at int64) *record.KV {
		return &record.KV{Key: key, Value: record.MustEncode(record.Ready{AtMillis: at})}
	}
	cases := map[string]struct {
		sent    []record.Op
		brought *record.KV
		want    int64 // 0: the record is not known
	}{
		"the record of the bytes that were sent":            {sent: []record.Op{sent("a", 1)}, brought: brought("a", 1), want: 1},
		"another coordinator has written the key meanwhile": {sent: []record.Op{sent("a", 1)}, brought: brought("a", 2)},
		"the key was never sent":                            {sent: []record.Op{sent("a", 1)}, brought: brought("b", 1)},
		"the newer of two writes":                           {sent: []record.Op{sent("a", 1), sent("a", 2)}, brought: brought("a", 2), want: 2},
		"the older of two writes is decoded":                {sent: []record.Op{sent("a", 1), sent("a", 2)}, brought: brought("a", 1)},
		"a writer that keeps no record": {
			sent: []record.Op{record.Put("a", brought("a", 1).Value)}, brought: brought("a", 1),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var w written
			w.add(c.sent)
			r, _ := w.take(c.brought).(*record.Ready)
			switch {
			case r == nil && c.want != 0:
				t.Errorf("the record is not known, want %d", c.want)
			case r != nil && r.AtMillis != c.want:
				t.Errorf("the record has %d, want %d", r.AtMillis, c.want)
			}
			if c.want != 0 && w.take(c.brought) != nil {
				t.Error("the record is still kept after it was taken")
			}
		})
	}
}

func TestWrittenIsBounded(t *testing.T) {
	var w written
	for i := range 3 * mostWritten {
		w.add([]record.Op{record.MustPutRecord(fmt.Sprint(i), record.Ready{AtMillis: int64(i + 1)})})
		if n := len(w.old) + len(w.young); n > mostWritten {
			t.Fatalf("%d records are kept, want at most %d", n, mostWritten)
		}
	}
	last := fmt.Sprint(3*mostWritten - 1)
	if w.take(&record.KV{Key: last, Value: record.MustEncode(record.Ready{AtMillis: 3 * mostWritten})}) == nil {
		t.Error("the newest record is not known")
	}
}

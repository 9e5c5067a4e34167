package capture_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/capture"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
)

// BenchmarkExport makes the document of a cluster with 50,000 units, of which each is a copy
// of one of the committed document, and its text.
func BenchmarkExport(b *testing.B) {
	d, err := capture.Decode(committed(b))
	if err != nil {
		b.Fatal(err)
	}
	var keys []record.KV
	for len(keys) < 50_000 {
		for _, k := range d.Keys {
			if strings.HasPrefix(k.Key, record.UnitsPrefix) {
				keys = append(keys, record.KV{Key: fmt.Sprintf("%s-%d", k.Key, len(keys)), Value: k.Value, CreateRev: k.Created, ModRev: k.Modified})
			}
		}
	}
	state := &lead.Captured{At: time.Unix(1_800_000_000, 0), Epoch: d.Epoch, Revision: d.Revision, Rules: d.Rules, Mix: d.Mix, Turn: d.Turn}
	b.ReportAllocs()
	for b.Loop() {
		made, err := capture.New("bench", state, d.Revision, keys)
		if err != nil {
			b.Fatal(err)
		}
		text, err := made.Encode()
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(text)))
	}
}

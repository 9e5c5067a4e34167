package day_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/history/narrate"
	"github.com/musterd/muster/coordinator/history/sound"
	"github.com/musterd/muster/coordinator/history/tally"
	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/postgres"
)

// rows are about as many as a batch of the history has here.
const rows = 100

// cluster keeps the histories of one simulated cluster, as a projector does.
type cluster struct {
	t         *testing.T
	histories map[string]*warehouse.Warehouse
	narrator  *narrate.Narrator
	slicer    *usage.Slicer
	at        resource.Revision // of the last batch
	newest    time.Time
	seen      *witness
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, histories: map[string]*warehouse.Warehouse{}, narrator: narrate.New("sim"), slicer: usage.NewSlicer(nil, nil, time.Time{}), seen: newWitness()}
	for name, dsn := range map[string]string{"PostgreSQL": postgres.Database(t), "SQLite": "sqlite:" + filepath.Join(t.TempDir(), "history.db")} {
		w, err := warehouse.Open(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		c.histories[name] = w
	}
	return c
}

// follow takes a change of the store.
func (c *cluster) follow(b record.Batch) {
	if len(b.Events) == 0 {
		return
	}
	c.seen.follow(c.t, b)
	c.narrator.Follow(b)
	c.slicer.Hear(c.narrator.Uses())
	for _, err := range c.narrator.Faults() {
		c.t.Error(err)
	}
	if c.narrator.Rows() >= rows {
		c.flush()
	}
}

// flush writes what the narrator has told.
func (c *cluster) flush() {
	b := c.narrator.Take()
	b.After = c.at
	c.at = b.Upto
	b.Cuts, b.Slices = c.slicer.Follow(b)
	if b.At.After(c.newest) {
		c.newest = b.At
	}
	for name, w := range c.histories {
		if err := w.Write(c.t.Context(), b); err != nil {
			c.t.Fatal(name, err)
		}
	}
}

// contradictions are those that SQL finds in a history, and the differences from the witness.
func (c *cluster) contradictions(w *warehouse.Warehouse) (found []string) {
	if _, err := tally.Settle(c.t.Context(), w, c.newest.Add(2*time.Hour)); err != nil {
		c.t.Fatal(err)
	}
	faults, err := sound.Check(c.t.Context(), w, time.Unix(0, 0))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, f := range faults {
		found = append(found, fmt.Sprintf("%s %s: %s", f.Check, f.Key, f.Detail))
	}
	all, err := w.All(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	var upto int64
	if at := c.slicer.Upto(); !at.IsZero() {
		upto = at.UnixMilli()
	}
	return append(found, c.seen.differences(all.Slices, upto)...)
}

package conformance

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/tally"
	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/resource"
)

// giveAPast writes two days of the tenant ml-team and of two of its quotas, and prices, into
// the history of a cluster that has not begun: trends, averages and costs are about hours
// that are over.
func giveAPast(t *testing.T, dataDir string) {
	t.Helper()
	w, err := warehouse.Open(t.Context(), "sqlite:"+filepath.Join(dataDir, "history.db"))
	if err != nil {
		t.Fatal(err)
	}
	hour := time.Now().UTC().Truncate(time.Hour)
	from := hour.Add(-48 * time.Hour)
	held := resource.Vector{resource.CPU: 8_000, resource.Memory: 64 << 30, resource.GPU: 2_000, resource.EphemeralStorage: 100 << 30}
	past := history.Batch{Units: []history.Unit{{
		UID: "of-the-past", Tenant: "ml-team", Namespace: "ml-team", Name: "past", PriorityClass: "normal", Created: from, Ended: hour, State: "Succeeded", Revision: 1,
	}}, Slices: usage.Slices(history.Grant{
		Tx: "of-the-past", Unit: "of-the-past", Tenant: "ml-team", Namespace: "ml-team", Committed: from, Ended: hour, Members: []history.Member{{Allocated: held}},
	}, hour)}
	var prices []usage.Price
	for slot, hard := range map[resource.Name]int64{resource.CPU: 10_000_000, resource.Memory: 40 << 40, resource.GPU: 100_000, resource.EphemeralStorage: 1 << 50} {
		for _, name := range []string{"whole", "ml-team-quota"} {
			past.Quotas = append(past.Quotas, history.Quota{Namespace: "ml-team", Name: name, Tenant: "ml-team", Slot: slot, Hard: hard, Soft: resource.Unlimited, From: from, Revision: 1})
		}
		prices = append(prices, usage.Price{From: from, Slot: slot, Per: held[slot], Hour: 1_250_000})
	}
	slices.SortFunc(prices, func(a, b usage.Price) int { return -slices.Compare([]byte(a.Slot), []byte(b.Slot)) })
	list, err := usage.NewPrices("USD", prices)
	if err == nil {
		err = tally.SetPrices(t.Context(), w, list)
	}
	if err == nil {
		err = w.Write(t.Context(), past)
	}
	if err == nil {
		_, err = tally.Settle(t.Context(), w, time.Now())
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

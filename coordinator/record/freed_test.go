package record_test

import (
	"testing"

	"github.com/musterd/muster/coordinator/record"
)

func TestGoldenFreedNodes(t *testing.T) {
	roundTrip(t, "ready-freed-instant", record.Ready{AtMillis: 1_767_323_046_125, Freed: []record.FreedNode{{Node: "gpu-01", AtMillis: 1_767_326_646_125}, {Node: "gpu-02", AtMillis: 1}}})
}

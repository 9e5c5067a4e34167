package record_test

import (
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/record"
)

func TestRecordsOfFeatureLevels(t *testing.T) {
	roundTrip(t, "cluster-level", record.Cluster{Name: "gpu-east", Level: 2})
	roundTrip(t, "level-coordinator", record.KnownLevel{Level: 2})
	roundTrip(t, "level-node", record.KnownLevel{Level: 1, Registered: "2026-01-02T03:04:05Z"})
	roundTrip(t, "raise", record.Raise{To: 2, By: "admin"})
}

func TestLevelsThatDoNotExistAreRefused(t *testing.T) {
	refused := func(name string, err error) {
		if err == nil || !strings.Contains(err.Error(), "-1") && !strings.Contains(err.Error(), "want 1 or more") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := record.Encode(record.Cluster{Name: "c", Level: -1})
	refused("a negative level of a cluster", err)
	_, err = record.Encode(record.KnownLevel{})
	refused("a known level 0", err)
	_, err = record.Encode(record.Raise{})
	refused("a raise to 0", err)
}

func TestTheLevelOfACandidateStandsBesideItsKey(t *testing.T) {
	if got, want := record.LevelOfCandidate(record.LeaderKey(0x2a)), record.CandidateLevelKey(0x2a); got != want || !strings.HasPrefix(got, record.LevelsPrefix) {
		t.Errorf("%s, want %s", got, want)
	}
}

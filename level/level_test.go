package level_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/musterd/muster/level"
)

func TestAFeatureIsOnFromItsLevelOn(t *testing.T) {
	f := level.Feature{Level: 2, Name: "reservations"}
	for cluster, want := range map[level.Level]bool{0: false, 1: false, 2: true, 3: true} {
		if got := cluster.On(f); got != want {
			t.Errorf("level %d: on %t, want %t", cluster, got, want)
		}
	}
}

func TestEachLevelOfThisProgramHasAFeature(t *testing.T) {
	has, last := map[level.Level]bool{}, level.Level(0)
	for _, f := range level.Features() {
		if f.Level < max(1, last) || f.Level > level.Newest || f.Name == "" {
			t.Errorf("%+v: want a name and a level of 1 to %d, in ascending order; raise level.Newest with the first feature of a level", f, level.Newest)
		}
		has[f.Level], last = true, f.Level
	}
	for l := level.Level(1); l <= level.Newest; l++ {
		if !has[l] {
			t.Errorf("level %d has no feature: add a row to level.Features", l)
		}
	}
}

func TestTheRefusalNamesBothLevels(t *testing.T) {
	if got := (&level.UnknownError{Cluster: 2, Known: 1}).Error(); !strings.Contains(got, "feature level 2") || !strings.Contains(got, "up to 1") {
		t.Error(got)
	}
	cause := errors.New("a damaged value")
	if err := error(&level.UnknownError{Cause: cause}); !errors.Is(err, cause) || !strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
}

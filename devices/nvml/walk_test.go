//go:build cgo && linux

package nvml_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/fake/fakehost"
	nvmltest "github.com/musterd/muster/test/nvml"
)

// walker does things at random to a host's cards, but not to the first.
type walker struct {
	*rand.Rand
	host    *fakehost.Host
	gpus    int
	mig     bool // the cards can be partitioned
	away    map[int]bool
	without bool // the driver is unloaded
}

// step does one thing and says what. Cards that are away, or without a driver,
// count no memory errors.
func (w *walker) step() string {
	h, gpu, coin := w.host, 1+w.IntN(w.gpus-1), w.IntN(2) == 0
	steps := []struct {
		name string
		do   func()
	}{
		{"xid", func() { h.XID(gpu, uint64(w.IntN(150))) }},
		{"ecc", func() {
			if !w.away[gpu] && !w.without {
				h.ECC(gpu, uint64(w.IntN(3)), uint64(w.IntN(2)))
			}
		}},
		{"retire", func() { h.Retire(gpu, coin) }},
		{"remap", func() { h.Remap(gpu, coin, w.IntN(4) == 0) }},
		{"go", func() {
			w.away[gpu] = true
			if coin {
				h.Lose(gpu)
			} else {
				h.Unplug(gpu)
			}
		}},
		{"come", func() {
			w.away[gpu] = false
			h.Return(gpu)
			h.Plug(gpu)
		}},
		{"partition", func() {
			var list []devices.MIGInstance
			for range w.IntN(4) {
				list = append(list, devices.MIGInstance{Profile: "1g.10gb", Memory: 9728 << 20})
			}
			h.Partition(gpu, list...)
		}},
		{"unpartition", func() { h.Unpartition(gpu) }},
	}
	if !w.mig {
		steps = steps[:len(steps)-2]
	}
	step := steps[w.IntN(len(steps))]
	step.do()
	return fmt.Sprintf("%s %d", step.name, gpu)
}

// TestWatchTellsWhatTheHostTells is the contract of a watch: through the
// library it tells what the scripted host tells of itself, step by step.
func TestWatchTellsWhatTheHostTells(t *testing.T) {
	libDir := nvmltest.Build(t)
	for seed, c := range map[uint64]struct {
		profile string
		gpus    int
		mig     bool
	}{1: {"mig-a100", 4, true}, 2: {"pcie-8x2", 8, false}, 3: {"dgx-h100", 8, true}} {
		t.Run(fmt.Sprintf("%s from seed %d", c.profile, seed), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, libDir, c.profile, lively, c.gpus-1)
			w := &walker{
				Rand: rand.New(rand.NewPCG(seed, 0)), host: s.host, gpus: c.gpus, mig: c.mig, away: map[int]bool{c.gpus - 1: true},
			}
			s.mark(0)
			var done []string
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("steps: %q", done)
				}
			})
			for range 40 {
				if w.IntN(10) > 0 {
					done = append(done, w.step())
				} else {
					w.without = true
					s.host.UnloadDriver()
					s.act()
					for range w.IntN(4) {
						done = append(done, w.step()+" without driver")
					}
					w.without = false
					s.host.LoadDriver()
				}
				s.act()
				s.mark(0)
			}
		})
	}
}

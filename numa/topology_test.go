package numa_test

import (
	"testing"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource/bitset"
)

func TestSockets(t *testing.T) {
	cpu := func(id, socket int, online bool) numa.CPU {
		return numa.CPU{ID: id, Socket: socket, NUMA: numa.Unknown, Online: online, Siblings: bitset.Of(id)}
	}
	tests := map[string]struct {
		cpus []numa.CPU
		want int
	}{
		"no CPU":                              {nil, 0},
		"two packages":                        {[]numa.CPU{cpu(0, 0, true), cpu(1, 1, true), cpu(2, 0, true)}, 2},
		"an offline CPU adds none":            {[]numa.CPU{cpu(0, 0, true), cpu(1, 1, false)}, 1},
		"a CPU that does not tell adds none":  {[]numa.CPU{cpu(0, 0, true), cpu(1, numa.Unknown, true)}, 1},
		"CPUs that do not tell are in one":    {[]numa.CPU{cpu(0, numa.Unknown, true), cpu(1, numa.Unknown, true)}, 1},
		"only offline CPUs are in no package": {[]numa.CPU{cpu(0, 0, false)}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			topology := numa.Topology{CPUs: test.cpus}
			if err := topology.Validate(); err != nil {
				t.Fatal(err)
			}
			if got := topology.Sockets(); got != test.want {
				t.Errorf("Sockets() = %d, want %d", got, test.want)
			}
		})
	}
}

package agents

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

func TestTheUseOfAMemberIsDecoded(t *testing.T) {
	kills := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		use  *musterv1.WorkUse
		want *grant.WorkUse
		err  string
	}{
		"nothing measured":  {nil, nil, ""},
		"kills not counted": {&musterv1.WorkUse{CpuMillis: 1500, MemoryBytes: 1, PeakMemoryBytes: 2}, &grant.WorkUse{CPU: 1500 * time.Millisecond, Memory: 1, PeakMemory: 2, OOMKills: grant.UnknownKills}, ""},
		"more than there is": {
			&musterv1.WorkUse{CpuMillis: math.MaxInt64, OomKills: kills(math.MaxInt64)},
			&grant.WorkUse{CPU: math.MaxInt64 / time.Millisecond * time.Millisecond, OOMKills: grant.MaxKills}, "",
		},
		"devices": {
			&musterv1.WorkUse{OomKills: kills(0), Devices: []*musterv1.WorkDevice{{Uuid: "a", BusyMillis: 1, MeasuredMillis: 4}, {Uuid: "b", PeakMemoryBytes: 3}}},
			&grant.WorkUse{Devices: []grant.DeviceUse{{UUID: "a", Busy: time.Millisecond, Measured: 4 * time.Millisecond}, {UUID: "b", PeakMemory: 3}}}, "",
		},
		"a device twice":            {&musterv1.WorkUse{Devices: []*musterv1.WorkDevice{{Uuid: "a"}, {Uuid: "a"}}}, nil, `work on t: states[0].use: devices[1].uuid: "a": want ascending UUIDs`},
		"a device without its UUID": {&musterv1.WorkUse{Devices: []*musterv1.WorkDevice{{}}}, nil, `work on t: states[0].use: devices[0].uuid: "": want ascending UUIDs`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decodeWork("n", &musterv1.Work{Tx: "t", States: []*musterv1.WorkState{{Phase: musterv1.WorkState_RUNNING, Use: c.use}}})
			if c.err != "" || err != nil {
				if err == nil || err.Error() != c.err {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if diff := cmp.Diff(c.want, got.States[0].Use); diff != "" {
				t.Error(diff)
			}
		})
	}
}

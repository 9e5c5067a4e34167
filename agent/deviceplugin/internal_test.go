package deviceplugin

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	"pgregory.net/rapid"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// TestAnswersAreThoseOfNVIDIAsPlugin has the answers that k8s-device-plugin v0.17 gives
// for the same devices, with deviceIDStrategy uuid and passDeviceSpecs false: read from
// its internal/plugin/server.go and internal/plugin/server_test.go.
func TestAnswersAreThoseOfNVIDIAsPlugin(t *testing.T) {
	const kind = "k8s.device-plugin.nvidia.com/gpu="
	env := func(value string) map[string]string { return map[string]string{"NVIDIA_VISIBLE_DEVICES": value} }
	annotation := func(value string) map[string]string {
		return map[string]string{"cdi.k8s.io/nvidia-device-plugin_uuid": value}
	}
	for name, c := range map[string]struct {
		strategies []Strategy
		ids        []string
		want       *pluginapi.ContainerAllocateResponse
	}{
		"envvar, one device":           {[]Strategy{EnvVar}, []string{"GPU-0"}, &pluginapi.ContainerAllocateResponse{Envs: env("GPU-0")}},
		"envvar, two devices":          {[]Strategy{EnvVar}, []string{"GPU-1", "GPU-0"}, &pluginapi.ContainerAllocateResponse{Envs: env("GPU-1,GPU-0")}},
		"envvar, a share":              {[]Strategy{EnvVar}, []string{"GPU-0::3"}, &pluginapi.ContainerAllocateResponse{Envs: env("GPU-0")}},
		"envvar, a MIG instance":       {[]Strategy{EnvVar}, []string{"MIG-7"}, &pluginapi.ContainerAllocateResponse{Envs: env("MIG-7")}},
		"cdi-annotations, no device":   {[]Strategy{CDIAnnotations}, nil, &pluginapi.ContainerAllocateResponse{}},
		"cdi-annotations, one device":  {[]Strategy{CDIAnnotations}, []string{"GPU-0"}, &pluginapi.ContainerAllocateResponse{Annotations: annotation(kind + "GPU-0")}},
		"cdi-annotations, two devices": {[]Strategy{CDIAnnotations}, []string{"GPU-0", "GPU-1"}, &pluginapi.ContainerAllocateResponse{Annotations: annotation(kind + "GPU-0," + kind + "GPU-1")}},
		"cdi-cri, two devices": {[]Strategy{CDICRI}, []string{"GPU-0", "GPU-1"}, &pluginapi.ContainerAllocateResponse{
			CdiDevices: []*pluginapi.CDIDevice{{Name: kind + "GPU-0"}, {Name: kind + "GPU-1"}},
		}},
		"cdi-cri, a MIG instance": {[]Strategy{CDICRI}, []string{"MIG-7"}, &pluginapi.ContainerAllocateResponse{CdiDevices: []*pluginapi.CDIDevice{{Name: kind + "MIG-7"}}}},
		"all three": {Strategies, []string{"GPU-0"}, &pluginapi.ContainerAllocateResponse{
			Envs: env("GPU-0"), Annotations: annotation(kind + "GPU-0"), CdiDevices: []*pluginapi.CDIDevice{{Name: kind + "GPU-0"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			config := Config{Strategies: c.strategies, CDIKind: DefaultCDIKind}
			if got := answer(&config, devicesOf(c.ids), "uuid"); !proto.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func hostOf(t testing.TB, profile string) *fit.Host {
	t.Helper()
	p, err := fake.Lookup(profile)
	if err != nil {
		t.Fatal(err)
	}
	h, err := fit.NewHost(p.Topology(), p.Inventory("n1"), fit.Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestMIGInstancesAreOfferedByProfile(t *testing.T) {
	h := hostOf(t, "mig-a100")
	l := ledger.New(h)
	do := func(c ledger.Command) {
		_, events := l.Decide(time.Unix(1000, 0), c)
		for _, e := range events {
			if err := l.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	do(ledger.Start{Incarnation: resource.Incarnation{JournalID: "j", BootID: "b"}})
	do(ledger.Registered{Revision: 1})
	c := Config{Resource: "nvidia.com/gpu"}
	want := map[string]int{}
	for _, d := range h.Inventory().Devices {
		if len(d.MIG.Instances) == 0 && d.MIG.Enabled {
			continue
		}
		if !d.MIG.Enabled {
			c.Pool = append(c.Pool, d.UUID)
			want["nvidia.com/gpu"]++
		}
		for _, m := range d.MIG.Instances {
			c.Pool = append(c.Pool, m.UUID)
			want["nvidia.com/mig-"+strings.ReplaceAll(m.Profile, "+", ".")]++
		}
	}
	do(ledger.Pool{Devices: c.Pool})
	got := map[string]int{}
	for name, units := range offers(&c, c.Pool, l.Snapshot()) {
		got[name] = len(units)
	}
	if len(want) < 2 || !maps.Equal(got, want) {
		t.Errorf("offered are %v, want %v", got, want)
	}
}

func TestPreferredUnitsHaveTheBestLinks(t *testing.T) {
	h := hostOf(t, "dgx-a100")
	var ids []string
	for _, d := range h.Inventory().Devices {
		ids = append(ids, d.UUID)
	}
	for name, c := range map[string]struct {
		available, required []string
		n                   int
		err                 string
	}{
		"two of all":                    {ids, nil, 2, ""},
		"all":                           {ids, nil, 8, ""},
		"with one that is required":     {ids, ids[6:7], 2, ""},
		"exactly the required ones":     {ids, ids[3:5], 2, ""},
		"more than there are":           {ids[:2], nil, 3, "3 units are wanted of 2 available ones"},
		"required and not available":    {ids[:2], ids[5:6], 2, "must be included and is not available"},
		"less than must be included":    {ids, ids[:3], 2, "with 3 that must be included"},
		"shares of two devices":         {[]string{"GPU-a::0", "GPU-a::1", "GPU-b::0"}, nil, 2, ""},
		"a share beside a required one": {[]string{"GPU-a::0", "GPU-a::1", "GPU-b::0"}, []string{"GPU-b::0"}, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := prefer(h, c.available, c.required, c.n)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || len(got) != c.n || !containsAll(got, c.required) || !containsAll(c.available, got) {
				t.Errorf("got %v, %v; want %d of %v with %v", got, err, c.n, c.available, c.required)
			}
			if again, _ := prefer(h, c.available, c.required, c.n); !slices.Equal(again, got) {
				t.Errorf("then %v", again)
			}
			if unique := slices.Compact(slices.Sorted(slices.Values(got))); len(unique) != len(got) {
				t.Errorf("%v has a unit twice", got)
			}
		})
	}
}

func containsAll(list, part []string) bool {
	return !slices.ContainsFunc(part, func(id string) bool { return !slices.Contains(list, id) })
}

// TestThePreferredPairIsNeverWorse compares with every pair, under random sets of
// available GPUs.
func TestThePreferredPairIsNeverWorse(t *testing.T) {
	for _, profile := range fake.Names() {
		h := hostOf(t, profile)
		inv := h.Inventory()
		rapid.Check(t, func(r *rapid.T) {
			var ids []string
			var at []int
			for i, d := range inv.Devices {
				if rapid.Bool().Draw(r, d.UUID) {
					ids, at = append(ids, d.UUID), append(at, i)
				}
			}
			if len(ids) < 2 {
				return
			}
			got, err := prefer(h, ids, nil, 2)
			if err != nil {
				r.Fatal(err)
			}
			link := inv.Link(at[slices.Index(ids, got[0])], at[slices.Index(ids, got[1])])
			for _, a := range at {
				for _, b := range at {
					if a != b && inv.Link(a, b) > link {
						r.Fatalf("%v are linked by %v, GPUs %d and %d by %v", got, link, a, b, inv.Link(a, b))
					}
				}
			}
		})
	}
}

// TestADeviceIsReturnedByTheRuleAlone compares with the rule over the whole history:
// two lists in a row without the device, at least 30 s apart, both begun after the last
// allocation and of one start of the kubelet.
func TestADeviceIsReturnedByTheRuleAlone(t *testing.T) {
	type entry struct {
		began   time.Time
		kubelet string
		has     bool
	}
	rapid.Check(t, func(r *rapid.T) {
		now := time.Unix(1000, 0)
		l := newLoans(30*time.Second, now)
		lent, allocated, last, kubelet := false, now, time.Time{}, "k0"
		var history []entry
		for i := range rapid.IntRange(1, 40).Draw(r, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(r, "seconds")) * time.Second)
			switch rapid.IntRange(0, 3).Draw(r, "kind") {
			case 0:
				l.allocated([]string{"g"}, now)
				lent, allocated = true, now
			case 1:
				kubelet = fmt.Sprintf("k%d", i)
			default:
				began := now.Add(-time.Duration(rapid.IntRange(0, 5).Draw(r, "since")) * time.Second)
				if began.Before(last) { // lists begin in the order of their answers
					began = last
				}
				last = began
				has := map[string]bool{"g": rapid.IntRange(0, 2).Draw(r, "has") == 0}
				var devices []string
				if lent {
					devices = []string{"g"}
				}
				free := l.listed(began, kubelet, has, devices)
				history = append(history, entry{began, kubelet, has["g"]})
				want := false
				for k := len(history) - 1; k >= 0 && lent; k-- {
					e := history[k]
					if e.has || e.kubelet != kubelet || !e.began.After(allocated) {
						if !e.began.After(allocated) {
							continue // counts for nothing
						}
						break
					}
					want = want || began.After(allocated) && !has["g"] && began.Sub(e.began) >= 30*time.Second
				}
				if got := len(free) == 1; got != want {
					r.Fatalf("at %v returned is %t, want %t: allocated %v, lists %v", began, got, want, allocated, history)
				}
				if want {
					lent, history = false, nil
				}
			}
		}
	})
}

func TestAConfigurationNamesAllItsFaults(t *testing.T) {
	good := Config{Pool: []string{"GPU-0"}}
	if c, err := good.Checked(); err != nil || c.Resource != DefaultResource || !slices.Equal(c.Strategies, []Strategy{EnvVar}) || c.Absent != 30*time.Second {
		t.Errorf("%+v, %v", c, err)
	}
	for want, c := range map[string]Config{
		"pool: 513 devices, want at most 512":               {Pool: slices.Repeat([]string{"GPU-0"}, 513)},
		`pool[1]: "0" is no UUID of a GPU`:                  {Pool: []string{"GPU-0", "0"}},
		"pool[1]: GPU-0 is listed twice":                    {Pool: []string{"GPU-0", "GPU-0"}},
		"shares: {GPU-1: 2}: the device is not in the pool": {Pool: []string{"GPU-0"}, Shares: map[string]int{"GPU-1": 2}},
		"shares: {GPU-0: 1}: want 2 to 64 shares":           {Pool: []string{"GPU-0"}, Shares: map[string]int{"GPU-0": 1}},
		`resource: "gpu" is not DOMAIN/NAME`:                {Pool: []string{"GPU-0"}, Resource: "gpu"},
		`cdiKind: "nvidia.com" is not DOMAIN/NAME`:          {Pool: []string{"GPU-0"}, CDIKind: "nvidia.com"},
		`strategies[0]: "volume-mounts" is none of`:         {Pool: []string{"GPU-0"}, Strategies: []Strategy{"volume-mounts"}},
		`sockets: "device-plugins" is no absolute path`:     {Pool: []string{"GPU-0"}, Sockets: "device-plugins"},
		`podResources: "kubelet.sock" is no absolute pa`:    {Pool: []string{"GPU-0"}, PodResources: "kubelet.sock"},
	} {
		if _, err := c.Checked(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	both := Config{Pool: []string{"x"}, Resource: "gpu"}
	if _, err := both.Checked(); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("want both faults, got %v", err)
	}
}

// FuzzUsers reads lists of the kubelet.
func FuzzUsers(f *testing.F) {
	seed, err := proto.Marshal(&podresources.ListPodResourcesResponse{PodResources: []*podresources.PodResources{{
		Name: "p", Namespace: "ns", Containers: []*podresources.ContainerResources{{Name: "c", Devices: []*podresources.ContainerDevices{{
			ResourceName: "muster.io/gpu", DeviceIds: []string{"GPU-0::1", "MIG-7", "../x"},
		}}}},
	}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		var list podresources.ListPodResourcesResponse
		if proto.Unmarshal(data, &list) != nil {
			return
		}
		for _, u := range usersOf(&list) {
			if len(u.Unit) > 63 || len(u.Pod) > maxName || !uuidText.MatchString(u.Device) {
				t.Fatalf("%+v", u)
			}
		}
		if text := (Status{Users: usersOf(&list)}).String(); len(text) > mostShown*(3*maxName+70)+64 {
			t.Fatalf("%d bytes", len(text))
		}
	})
}

func TestALongStatusIsCut(t *testing.T) {
	s := Status{Units: map[string]int{"muster.io/gpu": 40}, Kubelet: "the kubelet does not run"}
	for i := range 40 {
		s.Users = append(s.Users, User{Unit: fmt.Sprintf("GPU-%d", i), Namespace: "ns", Pod: "p", Container: "c"})
	}
	text := s.String()
	if !strings.HasPrefix(text, "muster.io/gpu: 40; GPU-0: ns/p/c; ") || !strings.HasSuffix(text, "; and 8 more containers; the kubelet does not run") {
		t.Error(text)
	}
}

package outputs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/agent/outputs"
)

var now = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// ended is a folder that ended so many minutes ago.
func ended(name, tenant string, bytes int64, minutes int) outputs.Member {
	return outputs.Member{Name: name, Tenant: tenant, Bytes: bytes, Ended: now.Add(-time.Duration(minutes) * time.Minute)}
}

func TestTheOutputOfOneTenantDisplacesNoOther(t *testing.T) {
	limits := outputs.Limits{For: time.Hour, Bytes: 100, MemberBytes: 64, Folders: 4}
	for name, c := range map[string]struct {
		list []outputs.Member
		lack outputs.Missing
		want []string
	}{
		"room for all":                            {list: []outputs.Member{ended("a", "ml", 60, 5), ended("b", "ml", 40, 4)}},
		"the age":                                 {list: []outputs.Member{ended("a", "ml", 1, 60), ended("b", "ml", 1, 59)}, want: []string{"a"}},
		"the oldest of the host":                  {list: []outputs.Member{ended("a", "ml", 60, 5), ended("b", "ml", 41, 4)}, want: []string{"a"}},
		"a flood leaves the output of others":     {list: []outputs.Member{ended("old", "vision", 40, 50), ended("a", "ml", 30, 3), ended("b", "ml", 30, 2), ended("c", "ml", 30, 1)}, want: []string{"a", "b"}},
		"half of the bytes beside another tenant": {list: []outputs.Member{ended("old", "vision", 1, 50), ended("a", "ml", 30, 3), ended("b", "ml", 30, 2)}, want: []string{"a"}},
		"many folders":                            {list: []outputs.Member{ended("old", "vision", 1, 50), ended("a", "ml", 1, 4), ended("b", "ml", 1, 3), ended("c", "ml", 1, 2), ended("d", "ml", 1, 1)}, want: []string{"a"}},
		"no room on the disk":                     {list: []outputs.Member{ended("old", "vision", 10, 50), ended("a", "ml", 20, 3), ended("b", "ml", 20, 2)}, lack: outputs.Missing{Bytes: 25}, want: []string{"a", "b"}},
		"no files on the disk":                    {list: []outputs.Member{ended("old", "vision", 10, 50), ended("a", "ml", 2, 3), ended("b", "ml", 2, 2)}, lack: outputs.Missing{Folders: 1}, want: []string{"a"}},
		"nothing is left to remove":               {list: []outputs.Member{ended("a", "ml", 1, 3), {Name: "live", Tenant: "ml", Bytes: 1000}}, lack: outputs.Missing{Bytes: 1 << 40}, want: []string{"a"}},
		"a live member stays":                     {list: []outputs.Member{{Name: "live", Tenant: "ml", Bytes: 1000}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, outputs.Decide(now, c.list, limits, c.lack).Remove); diff != "" {
				t.Errorf("removed folders (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLiveMembersShareTheBytes(t *testing.T) {
	live := func(name, tenant string) outputs.Member { return outputs.Member{Name: name, Tenant: tenant} }
	limits := outputs.Limits{For: time.Hour, Bytes: 1 << 30, MemberBytes: 64 << 20, Folders: 10}
	few := outputs.Decide(now, []outputs.Member{live("a", "ml"), live("b", "vision"), ended("c", "x", 1, 1)}, limits, outputs.Missing{}).Shares
	if diff := cmp.Diff(map[string]int64{"a": 64 << 20, "b": 64 << 20}, few); diff != "" {
		t.Errorf("few members (-want +got):\n%s", diff)
	}
	many := []outputs.Member{live("b", "vision")}
	for i := range 64 {
		many = append(many, live(fmt.Sprint(i), "ml"))
	}
	got := outputs.Decide(now, many, limits, outputs.Missing{}).Shares
	if got["b"] != 64<<20 || got["5"] != 8<<20 {
		t.Errorf("beside 64 members of another tenant a member has %d bytes, and each of the 64 has %d; want 64 MiB and 8 MiB", got["b"], got["5"])
	}
}

func TestTheRoomThatIsMissing(t *testing.T) {
	const gib = 1 << 30
	for name, c := range map[string]struct {
		size, free, files, freeFiles int64
		want                         outputs.Missing
	}{
		"plenty":             {100 * gib, 50 * gib, 1e6, 5e5, outputs.Missing{}},
		"less than 2 GiB":    {100 * gib, gib, 1e6, 5e5, outputs.Missing{Bytes: gib}},
		"a small disk":       {gib, gib, 0, 0, outputs.Missing{}},
		"a small, full disk": {100, 0, 0, 0, outputs.Missing{Bytes: 20}},
		"no files":           {100 * gib, 50 * gib, 1e6, 0, outputs.Missing{Folders: 2501}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, outputs.Short(c.size, c.free, c.files, c.freeFiles)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOutputsKeepWithinTheirLimits holds the limits for any list.
func TestOutputsKeepWithinTheirLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := outputs.Limits{For: time.Hour, Bytes: rapid.Int64Range(0, 200).Draw(t, "bytes"), MemberBytes: 64 << 20, Folders: rapid.IntRange(0, 10).Draw(t, "folders")}
		var list []outputs.Member
		for i := range rapid.IntRange(0, 20).Draw(t, "members") {
			list = append(list, ended(fmt.Sprint(i), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tenant"), rapid.Int64Range(0, 60).Draw(t, "size"), rapid.IntRange(0, 70).Draw(t, "age")))
		}
		gone := map[string]bool{}
		for _, name := range outputs.Decide(now, list, limits, outputs.Missing{}).Remove {
			if gone[name] {
				t.Fatalf("%s is removed twice", name)
			}
			gone[name] = true
		}
		var sum int64
		count := 0
		for _, m := range list {
			switch old := now.Sub(m.Ended) >= time.Hour; {
			case old && !gone[m.Name]:
				t.Fatalf("%s stays beyond the age", m.Name)
			case !gone[m.Name]:
				sum += m.Bytes
				count++
			}
		}
		if sum > limits.Bytes || count > limits.Folders {
			t.Fatalf("%d bytes in %d folders stay, want at most %d in %d", sum, count, limits.Bytes, limits.Folders)
		}
	})
}

// Package outputs decides which output of members gives way on a host: the folders of ended
// members to remove, and the bytes for each live member. No tenant displaces the
// output of another tenant below an equal share. The package reads no file, and removes none.
package outputs

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Member is the folder of a start.
type Member struct {
	Name   string // of the folder
	Tenant string // "" where no agent has written the tenant down
	Bytes  int64  // of the output, with the other files of the folder
	// Ended is the time of the end; zero: the member runs, or the end is not reported yet, and
	// the folder stays.
	Ended time.Time
}

// Limits bound the output.
type Limits struct {
	For time.Duration // after the end
	// Bytes bounds the output of all ended members, and once more that of all live ones.
	Bytes int64
	// MemberBytes bounds the output of each live member.
	MemberBytes int64
	// Folders bounds the folders of ended members.
	Folders int
}

// LeastShare is the least output that a live member keeps, in bytes.
const LeastShare = 64 << 10

// Decision is the result of Decide.
type Decision struct {
	Remove []string         // folders of ended members, in order
	Shares map[string]int64 // bytes of each live member, by folder
}

// Missing is the room that the file system lacks.
type Missing struct {
	Bytes   int64
	Folders int // that have to go for their files
}

// sum is the output of a tenant.
type sum struct {
	bytes   int64
	folders []Member // of ended members, the oldest first
}

// Decide is pure. Folders of ended members go for their age; then, while all together or those
// of a tenant are beyond the limits, or the file system lacks room, the oldest folder of the
// tenant with the most output goes. A tenant has half of the bytes where another tenant has output.
func Decide(now time.Time, list []Member, l Limits, lack Missing) Decision {
	d := Decision{Shares: shares(list, l)}
	tenants := map[string]*sum{}
	var all int64
	count := 0
	ordered := slices.SortedFunc(slices.Values(list), func(a, b Member) int {
		return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.Name, b.Name))
	})
	remove := func(m Member) {
		d.Remove = append(d.Remove, m.Name)
		lack.Bytes -= m.Bytes
		lack.Folders--
	}
	for _, m := range ordered {
		switch {
		case m.Ended.IsZero():
			continue
		case now.Sub(m.Ended) >= l.For:
			remove(m)
			continue
		}
		t := tenants[m.Tenant]
		if t == nil {
			t = &sum{}
			tenants[m.Tenant] = t
		}
		t.bytes += m.Bytes
		t.folders = append(t.folders, m)
		all += m.Bytes
		count++
	}
	most := l.Bytes
	if len(tenants) > 1 {
		most /= 2
	}
	for count > 0 {
		largest := largestOf(tenants, count > l.Folders || lack.Folders > 0)
		if all <= l.Bytes && largest.bytes <= most && count <= l.Folders && lack.Bytes <= 0 && lack.Folders <= 0 {
			break
		}
		m := largest.folders[0]
		largest.folders = largest.folders[1:]
		largest.bytes -= m.Bytes
		all -= m.Bytes
		count--
		remove(m)
	}
	return d
}

// largestOf is the tenant with the most bytes, or with the most folders, that has a folder.
func largestOf(tenants map[string]*sum, byFolders bool) *sum {
	var found *sum
	var name string
	for n, t := range tenants {
		if len(t.folders) == 0 {
			continue
		}
		order := 0
		if found != nil {
			order = cmp.Compare(t.bytes, found.bytes)
			if byFolders {
				order = cmp.Compare(len(t.folders), len(found.folders))
			}
			order = cmp.Or(order, cmp.Compare(name, n))
		}
		if found == nil || order > 0 {
			found, name = t, n
		}
	}
	return found
}

// shares divides the bytes of live members among the tenants, and the part of a tenant among
// the members of this tenant.
func shares(list []Member, l Limits) map[string]int64 {
	live := map[string]int64{}
	for _, m := range list {
		if m.Ended.IsZero() {
			live[m.Tenant]++
		}
	}
	shares := map[string]int64{}
	for _, m := range list {
		if m.Ended.IsZero() {
			share := l.Bytes / int64(len(live)) / live[m.Tenant]
			shares[m.Name] = max(LeastShare, min(share, l.MemberBytes))
		}
	}
	return shares
}

// Short is the room that a file system lacks, from the sizes of the whole and of the free part
// in bytes and files. A file system without a bound of files has 0 files.
func Short(size, free, files, freeFiles int64) Missing {
	lack := Missing{Bytes: max(0, 2*Floor(size)-free)}
	if want := min(files/20, 10_000); freeFiles < want {
		lack.Folders = int(min(math.MaxInt32, (want-freeFiles)/filesOfFolder+1))
	}
	return lack
}

// filesOfFolder is the least number of files in the folder of an ended member.
const filesOfFolder = 4

// Floor is the free part of a file system below which live members keep little output.
func Floor(size int64) int64 { return min(size/10, 1<<30) }

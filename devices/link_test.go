package devices_test

import (
	"fmt"
	"testing"

	"github.com/musterd/muster/devices"
)

// allLinks is every class, worst first.
func allLinks() []devices.Link {
	links := []devices.Link{
		devices.LinkNone, devices.LinkSYS, devices.LinkNODE, devices.LinkPHB, devices.LinkPXB, devices.LinkPIX,
	}
	for n := 1; n <= devices.MaxNVLinks; n++ {
		links = append(links, devices.NVLink(n))
	}
	return links
}

func TestLinksAscendFromWorstToBest(t *testing.T) {
	links := allLinks()
	for i := 1; i < len(links); i++ {
		if links[i-1] >= links[i] {
			t.Errorf("%s is not below %s", links[i-1], links[i])
		}
	}
}

func TestEveryLinkReadsBackAsItself(t *testing.T) {
	names := []string{"X", "SYS", "NODE", "PHB", "PXB", "PIX"}
	for i, link := range allLinks() {
		var name string
		nvlinks := 0
		if i < len(names) {
			name = names[i]
		} else {
			nvlinks = i - len(names) + 1
			name = fmt.Sprintf("NV%d", nvlinks)
		}
		got, err := devices.ParseLink(name)
		if err != nil || got != link || link.String() != name {
			t.Errorf("%q reads as %s, %v; link %d prints as %s", name, got, err, uint8(link), link)
		}
		if link.NVLinks() != nvlinks {
			t.Errorf("%s has %d NVLinks, want %d", link, link.NVLinks(), nvlinks)
		}
	}
}

func TestParseLinkRefusesWhatStringDoesNotPrint(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "a name in lower case": "sys", "white space": " PIX", "an unknown name": "PCIE",
		"NVLink without a number": "NV", "no NVLinks": "NV0", "one NVLink too many": "NV33", "a negative number": "NV-1",
		"a plus sign": "NV+1", "a leading zero": "NV01", "a number with a tail": "NV4x", "a number beyond 64 bits": "NV99999999999999999999",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := devices.ParseLink(text)
			want := fmt.Sprintf("link %q: want SYS, NODE, PHB, PXB, PIX or NV1..NV32", text)
			if err == nil || err.Error() != want || got != devices.LinkNone {
				t.Errorf("ParseLink(%q) = %s, %v; want %s", text, got, err, want)
			}
		})
	}
}

func TestNVLinkPanicsOutsideItsRange(t *testing.T) {
	for _, n := range []int{-1, 0, devices.MaxNVLinks + 1, 1 << 20} {
		func() {
			want := fmt.Sprintf("devices: %d NVLinks outside 1..32", n)
			defer func() {
				if got := recover(); got != want {
					t.Errorf("NVLink(%d) panicked with %v, want %q", n, got, want)
				}
			}()
			devices.NVLink(n)
		}()
	}
}

func TestALinkKeepsThePCIeRelationBesideItsNVLinks(t *testing.T) {
	before := devices.LinkNone
	for n := 1; n <= devices.MaxNVLinks; n++ {
		for path := devices.LinkNone; path <= devices.LinkPIX; path++ {
			l := devices.NVLink(n).Over(path)
			if l.NVLinks() != n || l.PCIe() != path || !l.Valid() || l.String() != fmt.Sprintf("NV%d", n) {
				t.Errorf("%d NVLinks over %s: %s with %d over %s, valid %t", n, path, l, l.NVLinks(), l.PCIe(), l.Valid())
			}
			if l <= before || l <= devices.LinkPIX {
				t.Errorf("%d NVLinks over %s are not above what is worse", n, path)
			}
			before = l
		}
	}
	if best := devices.NVLink(devices.MaxNVLinks).Over(devices.LinkPIX); (best + 1).Valid() {
		t.Errorf("link %d is valid, and no connection", uint8(best+1))
	}
	if got := devices.LinkPHB.Over(devices.NVLink(2).Over(devices.LinkSYS)); got != devices.LinkSYS {
		t.Errorf("PHB over a path of SYS is %s, want SYS", got)
	}
}

package gpuallocator_test

import (
	"fmt"
	"testing"

	"github.com/NVIDIA/go-gpuallocator/gpuallocator"

	"github.com/musterd/muster/devices"
)

// linkTypes names the library's link types, by number: the type itself is in
// an internal package, and has a String method.
const (
	crossCPU = iota + 1
	sameCPU
	hostBridge
	multiSwitch
	singleSwitch
	sameBoard
	singleNVLink
	mostNVLinks = singleNVLink + 17
)

// linkType is a PCIe relation in the library's words.
func linkType(l devices.Link) uint {
	switch l {
	case devices.LinkSYS:
		return crossCPU
	case devices.LinkNODE:
		return sameCPU
	case devices.LinkPHB:
		return hostBridge
	case devices.LinkPXB:
		return multiSwitch
	case devices.LinkPIX:
		return singleSwitch
	}
	panic(fmt.Sprintf("link %s is no PCIe relation", l))
}

// setType assigns a number to a value of the internal type.
func setType[T ~uint](to *T, number uint) { *to = T(number) }

// connect adds a link between two of the library's devices, in both directions.
func connect(a, b *gpuallocator.Device, number uint) {
	for _, ends := range [][2]*gpuallocator.Device{{a, b}, {b, a}} {
		link := gpuallocator.P2PLink{GPU: ends[1]}
		setType(&link.Type, number)
		ends[0].Links[ends[1].Index] = append(ends[0].Links[ends[1].Index], link)
	}
}

// unconnected are n of the library's devices without links.
func unconnected(n int) []*gpuallocator.Device {
	list := make([]*gpuallocator.Device, n)
	for i := range list {
		list[i] = &gpuallocator.Device{Index: i, Links: map[int][]gpuallocator.P2PLink{}}
		list[i].UUID = fmt.Sprintf("GPU-%d", i)
	}
	return list
}

// library is the topology as the library sees it: NVLinks first, as in its
// tests.
func (p topology) library(t testing.TB) []*gpuallocator.Device {
	t.Helper()
	list := unconnected(len(p.nodes))
	for i, row := range p.pairs(t) {
		for j, at := range row[:i] {
			if at.nvlinks > 0 {
				connect(list[j], list[i], singleNVLink+uint(at.nvlinks)-1)
			}
			if at.pcie != devices.LinkNone {
				connect(list[j], list[i], linkType(at.pcie))
			}
		}
	}
	return list
}

// score is the library's pair score (calculateGPUPairScore of
// besteffort_policy.go): 100 for each NVLink, and 10 to 50 for the PCIe
// relation on top. TestPairScoresAreTheLibrarys holds it against the library.
func (p pair) score() int {
	score := 100 * p.nvlinks
	if p.pcie != devices.LinkNone {
		score += 10 * int(linkType(p.pcie))
	}
	return score
}

// setScore is the sum over all pairs of a set, given as a mask.
func setScore(pairs [][]pair, set uint) int {
	score := 0
	for i := range pairs {
		for j := range i {
			if set>>i&1 == 1 && set>>j&1 == 1 {
				score += pairs[i][j].score()
			}
		}
	}
	return score
}

package sysfs

import (
	"crypto/sha256"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource/bitset"
)

// A groupFile is one of the files by which kernels of several ages report the
// same group of CPUs.
type groupFile struct {
	name   string
	isMask bool
}

var (
	coreFiles    = []groupFile{{"core_cpus_list", false}, {"thread_siblings_list", false}, {"core_cpus", true}, {"thread_siblings", true}}
	packageFiles = []groupFile{{"package_cpus_list", false}, {"core_siblings_list", false}, {"package_cpus", true}, {"core_siblings", true}}
	l3Files      = []groupFile{{"shared_cpu_list", false}, {"shared_cpu_map", true}}
)

// partition gathers the claims of each CPU about the group (core, L3) it belongs
// to. Where all is well the distinct answers are disjoint; two answers that
// overlap contradict each other, and then neither is believed.
//
// Invariant: claims[cpu] indexes groups, and so does owner[cpu] unless it is
// Unknown; every group holds present CPUs only.
type partition struct {
	files    []groupFile
	most     int // members of a group that can be; 0 is no bound
	first    int // the file that answered last
	present  bitset.Set
	groups   []bitset.Set
	paths    []string // where each group was first read
	byText   map[string]int
	bySet    map[[sha256.Size]byte]int
	claims   map[int]int
	owner    []int // after settle: the first claimed group that names a CPU, or Unknown
	disputed []bool
	number   []int // after settle: undisputed groups counted by least CPU
}

func newPartition(files []groupFile, present bitset.Set) *partition {
	return &partition{
		files: files, present: present,
		byText: map[string]int{}, bySet: map[[sha256.Size]byte]int{}, claims: map[int]int{},
	}
}

// A claimed CPU has reported its group, an unmentioned one has no file that would,
// and an unclaimed one has only files that were warned about.
type claimed uint8

const (
	unmentioned claimed = iota
	unclaimed
	inGroup
)

// claim reads the group of one CPU from the first good file in dir.
func (r *reader) claim(p *partition, id int, dir string) claimed {
	outcome := unmentioned
	for i := range p.files {
		which := (p.first + i) % len(p.files)
		file := p.files[which]
		path := dir + file.name
		text, err := r.text(path)
		if absent(err) {
			continue
		}
		outcome = unclaimed
		var group int
		if err == nil {
			group, err = r.intern(p, text, path, file.isMask)
		}
		if err != nil {
			r.warn(path, "%v", err)
			continue
		}
		if !p.groups[group].Has(id) {
			r.warn(path, "names cpus %s, but not cpu %d itself", brief(p.groups[group]), id)
			continue
		}
		p.first = which
		p.claims[id] = group
		return inGroup
	}
	return outcome
}

// intern returns the group that text describes; equal groups are one.
func (r *reader) intern(p *partition, text, path string, isMask bool) (int, error) {
	key := text
	if isMask {
		key = "mask " + text
	}
	if group, ok := p.byText[key]; ok {
		return group, nil
	}
	parse := parseList
	if isMask {
		parse = parseMask
	}
	set, err := r.bounded(path, maxCPU)(parse(text, maxCPU))
	if err != nil {
		return 0, err
	}
	set = set.Intersect(p.present)
	sum := sha256.Sum256([]byte(set.String()))
	group, ok := p.bySet[sum]
	if !ok {
		group = len(p.groups)
		p.groups = append(p.groups, set)
		p.paths = append(p.paths, path)
		p.bySet[sum] = group
	}
	p.byText[key] = group
	return group, nil
}

// settle finds the groups that nothing contradicts and numbers them. The
// text what ends the warning about the others.
func (r *reader) settle(p *partition, what string) {
	p.owner = make([]int, maxCPU+1)
	for id := range p.owner {
		p.owner[id] = numa.Unknown
	}
	p.disputed = make([]bool, len(p.groups))
	// A group that no CPU claims any more (its reader was not in it) counts
	// for nothing.
	live := make([]bool, len(p.groups))
	for _, group := range p.claims {
		live[group] = true
	}
	for group, set := range p.groups {
		if !live[group] {
			continue
		}
		if n := set.Len(); p.most > 0 && n > p.most {
			r.warn(p.paths[group], "names %d cpus, more than %d, as %s", n, p.most, what)
			p.disputed[group] = true
		}
		for id := range set.All() {
			rival := p.owner[id]
			if rival == numa.Unknown {
				p.owner[id] = group
				continue
			}
			if !p.disputed[group] {
				r.warn(p.paths[group], "cpus %s contradict %s, which names cpus %s as %s", brief(set), p.paths[rival], brief(p.groups[rival]), what)
			}
			p.disputed[group], p.disputed[rival] = true, true
		}
	}
	p.number = make([]int, len(p.groups))
	for group := range p.number {
		p.number[group] = numa.Unknown
	}
	next := 0
	for id := range p.present.All() {
		if group := p.owner[id]; group != numa.Unknown && !p.disputed[group] && p.number[group] == numa.Unknown {
			p.number[group] = next
			next++
		}
	}
}

// group returns a CPU's undisputed group and its number. A CPU that claimed
// nothing belongs to the group that names it.
func (p *partition) group(id int) (number int, members bitset.Set, ok bool) {
	group := p.owner[id]
	if group == numa.Unknown || p.disputed[group] {
		return numa.Unknown, bitset.Set{}, false
	}
	return p.number[group], p.groups[group], true
}

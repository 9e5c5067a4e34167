package sysfs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/resource/bitset"
)

const (
	globalHugepages = "sys/kernel/mm/hugepages"
	// maxPageSizes bounds the huge page sizes of one node; no port has over 9.
	maxPageSizes = 32
)

// hugepages reads the pages of each size in kB from a folder; nil where there
// are none. told is false where the folder is absent.
func (r *reader) hugepages(dir string) (pages map[int]int64, told bool) {
	names, err := r.names(dir)
	if err != nil {
		if !absent(err) {
			r.warn(dir, "%v; huge pages are unknown", err)
		}
		return nil, !absent(err)
	}
	slices.Sort(names)
	for _, name := range names {
		sizeText, ok := strings.CutPrefix(name, "hugepages-")
		if !ok {
			continue
		}
		path := dir + "/" + name
		size, err := strconv.ParseUint(strings.TrimSuffix(sizeText, "kB"), 10, 31)
		if err != nil || size == 0 || sizeText != strconv.FormatUint(size, 10)+"kB" {
			r.warn(path, "its name is not a page size in kB; ignored")
			continue
		}
		if len(pages) == maxPageSizes {
			r.warn(dir, "has more than %d page sizes; the rest is ignored", maxPageSizes)
			break
		}
		text, err := r.text(path + "/nr_hugepages")
		var count int64
		if err == nil {
			count, err = parseCount(text)
		}
		if err != nil {
			r.warn(path+"/nr_hugepages", "%v; the pages of this size are unknown and left out", err)
			continue
		}
		if pages == nil {
			pages = map[int]int64{}
		}
		pages[int(size)] = count
	}
	return pages, true
}

// nodesHugepages reads the pages of each node. Kernels before 2.6.32 have no
// folder for them, but a line in the node's meminfo. A tree's only node has all
// of the host's pages; where there are several and none tells, pages that the
// host has somewhere are warned about.
func (r *reader) nodesHugepages(nodes []int) map[int]map[int]int64 {
	pages := make(map[int]map[int]int64, len(nodes))
	var silent bitset.Set
	for _, id := range nodes {
		var told bool
		if pages[id], told = r.hugepages(nodePath(id, "/hugepages")); !told {
			silent.Add(id)
		}
	}
	if silent.Len() < len(nodes) {
		// A node without memory has no such folder.
		return pages
	}
	global, told := r.hugepages(globalHugepages)
	if !told {
		for _, id := range nodes {
			pages[id] = r.hugepagesOfMeminfo(nodePath(id, "/meminfo"))
		}
		return pages
	}
	for size, count := range global {
		if count == 0 {
			delete(global, size)
		}
	}
	if len(nodes) == 1 {
		pages[nodes[0]] = global
	} else if len(global) > 0 {
		r.warn(globalHugepages, "counts huge pages, but no node says which are its own; none is shown")
	}
	return pages
}

// hugepagesOfMeminfo reads the pages of the default size, which kernels before
// 2.6.27 count in meminfo alone; nil where there are none. Faults of the file
// itself are warned about by those who read its memory.
func (r *reader) hugepagesOfMeminfo(path string) map[int]int64 {
	text, err := r.text(path)
	if err != nil {
		return nil
	}
	count, err := parseHugePagesTotal(text)
	if err != nil {
		r.warn(path, "%v; huge pages are unknown", err)
		return nil
	}
	if count == 0 {
		return nil
	}
	host, err := r.text("proc/meminfo")
	if err != nil {
		r.warn("proc/meminfo", "%v; the size of %d huge pages is unknown", err, count)
		return nil
	}
	size, err := parseHugePageSize(host)
	if err != nil {
		r.warn("proc/meminfo", "%v; the size of %d huge pages is unknown", err, count)
		return nil
	}
	return map[int]int64{size: count}
}

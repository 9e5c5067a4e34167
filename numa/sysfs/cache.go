package sysfs

import "strconv"

// l3Index is the cache index that was level 3 on the CPU read before.
type l3Index int

const maxCacheIndex = 15

// l3Folder finds a CPU's level 3 cache of data; ok is false where there is
// none, as on many virtual machines and small cores.
func (r *reader) l3Folder(id int, hint *l3Index) (dir string, ok bool) {
	if *hint > 0 {
		if dir, is, _ := r.isL3(id, int(*hint)); is {
			return dir, true
		}
	}
	for index := 0; index <= maxCacheIndex; index++ {
		dir, is, exists := r.isL3(id, index)
		if is {
			*hint = l3Index(index)
			return dir, true
		}
		if exists {
			continue
		}
		// Indices follow each other on every kernel; a tree with a hole is
		// read by its listing.
		rest, err := r.folders(cpuPath(id, "/cache"), "index", maxCacheIndex)
		if err != nil && !absent(err) {
			r.warn(cpuPath(id, "/cache"), "%v; its caches are ignored", err)
		}
		for ; index < maxCacheIndex && !rest.Has(index+1); index++ {
		}
	}
	return "", false
}

// isL3 reports whether a cache index is the level 3 cache, and whether the
// index exists.
func (r *reader) isL3(id, index int) (dir string, is, exists bool) {
	dir = cpuPath(id, "/cache/index"+strconv.Itoa(index)+"/")
	level, err := r.text(dir + "level")
	if absent(err) {
		return dir, false, false
	}
	if err != nil {
		r.warn(dir+"level", "%v; the cache is ignored", err)
		return dir, false, true
	}
	if level != "3" {
		return dir, false, true
	}
	// Kernels and captures without the type have unified caches there.
	kind, err := r.text(dir + "type")
	return dir, err != nil || kind != "Instruction", true
}

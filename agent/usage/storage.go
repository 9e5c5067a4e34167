package usage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/shirou/gopsutil/v3/disk"

	"github.com/musterd/muster/resource"
)

// storageUnit is the unit to which Storage rounds down.
const storageUnit = 1 << 20

// Storage returns the part of a folder's file system that is handed out: all of the file
// system less 10 %, in whole MiB, at most resource.MaxCount. Of a folder that is not made
// yet it measures the nearest folder above.
func Storage(ctx context.Context, dir string) (resource.Bytes, error) {
	for {
		_, err := os.Stat(dir)
		if above := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && above != dir {
			dir = above
			continue
		}
		break
	}
	d, err := disk.UsageWithContext(ctx, dir)
	if err != nil {
		return 0, fmt.Errorf("usage: measure the file system of %s: %w", dir, err)
	}
	return storageOf(d.Total), nil
}

// storageOf is the part of a file system of a size that is handed out.
func storageOf(total uint64) resource.Bytes {
	part := min(total/10*9, resource.MaxCount)
	return resource.Bytes(part - part%storageUnit)
}

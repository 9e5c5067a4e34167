package era

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/musterd/muster/resource"
)

// FileName is the file of a coordinator's Known, in the data folder.
const FileName = "store-known.json"

const fileVersion = 1

// file is the content of the file.
type file struct {
	V        int    `json:"v"`
	Cluster  string `json:"cluster"`
	Revision int64  `json:"revision"`
	Epoch    int64  `json:"epoch,omitempty"`
	Mark     string `json:"mark,omitempty"`
	Key      string `json:"key,omitempty"`
	Written  int64  `json:"written,omitempty"`
	Hash     uint64 `json:"hash,omitempty"`
	Restored string `json:"restored,omitempty"`
}

// load reads a coordinator's Known; found is false without a file, or with the file of
// another cluster. A damaged file is an error: its deletion forgets the past.
func load(path, cluster string) (k Known, found bool, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Known{}, false, nil
	}
	if err != nil {
		return Known{}, false, err
	}
	var f file
	if err := json.Unmarshal(b, &f); err != nil {
		return Known{}, false, fmt.Errorf("%s: %w; delete the file if the store is known to be the newest", path, err)
	}
	if f.V != fileVersion {
		return Known{}, false, fmt.Errorf("%s: version %d is not known; this program reads version %d", path, f.V, fileVersion)
	}
	if f.Cluster != cluster {
		return Known{}, false, nil
	}
	return Known{
		Revision: resource.Revision(f.Revision), Epoch: resource.Epoch(f.Epoch), Mark: f.Mark, Restored: f.Restored,
		Anchor: Anchor{Key: f.Key, Revision: resource.Revision(f.Written), Hash: f.Hash},
	}, true, nil
}

// save replaces the file, durably.
func save(path, cluster string, k Known) error {
	b, err := json.Marshal(file{
		V: fileVersion, Cluster: cluster, Revision: int64(k.Revision), Epoch: int64(k.Epoch), Mark: k.Mark,
		Key: k.Anchor.Key, Written: int64(k.Anchor.Revision), Hash: k.Anchor.Hash, Restored: k.Restored,
	})
	if err != nil {
		return err
	}
	t, err := os.CreateTemp(filepath.Dir(path), FileName+".*")
	if err != nil {
		return err
	}
	_, err = t.Write(append(b, '\n'))
	err = errors.Join(err, t.Sync(), t.Close())
	if err == nil {
		err = os.Rename(t.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(t.Name()))
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

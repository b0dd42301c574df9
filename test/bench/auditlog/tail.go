// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// Tail reads what is appended to an audit log.
type Tail struct {
	path   string
	offset int64
}

// NewTail starts at the current end of a log.
func NewTail(path string) (*Tail, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot find the audit log: %w", err)
	}
	return &Tail{path: path, offset: info.Size()}, nil
}

// Count counts the requests of a user that were logged since the last call.
func (t *Tail) Count(user string) (Counts, error) {
	file, err := os.Open(t.path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(t.offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("cannot read the audit log: %w", err)
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the audit log: %w", err)
	}
	// The last line may still be being written.
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	t.offset += int64(len(data))
	return Count(data, user)
}

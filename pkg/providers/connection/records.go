// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import "github.com/masthead-dev/masthead/pkg/setmap"

// records are the records of all enrolments, with what wakes many of them as indexes: at a start, each class and each
// namespace of the hub is an event. Provider.mu guards them.
type records struct {
	byKey                map[Key]*record
	byClass, byNamespace setmap.Map[string, Key]
}

func newRecords() records {
	return records{byKey: map[Key]*record{}, byClass: setmap.Map[string, Key]{}, byNamespace: setmap.Map[string, Key]{}}
}

func (rs *records) add(r *record) {
	rs.byKey[r.key] = r
	rs.byClass.Insert(r.class, r.key)
	rs.byNamespace.Insert(r.key.Namespace, r.key)
}

// setClass notes the class that an enrolment names now.
func (rs *records) setClass(r *record, class string) {
	if r.class == class {
		return
	}
	rs.byClass.Delete(r.class, r.key)
	r.class = class
	rs.byClass.Insert(class, r.key)
}

func (rs *records) remove(r *record) {
	delete(rs.byKey, r.key)
	rs.byClass.Delete(r.class, r.key)
	rs.byNamespace.Delete(r.key.Namespace, r.key)
}

// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dynamicclient makes dynamic and metadata clients whose decoders are guarded (pkg/guard), and dynamic clients
// that decode what API servers send with less work. client-go's own reads the text of each event of a watch nine times:
// to find where it ends, which kind it says it is, whether it is valid, what is in it, and the same once more for the
// object in it. Here it is three times. That was more than a quarter of the manager's processor time when it carries
// many claims.
//
// What is decoded, and what is an error, is the same as with client-go's client, which does whatever is not the common
// case: lists, errors and other forms of events. FuzzDecode and FuzzEvent compare the two. There is one exception: an
// event of a watch has only those entries of managedFields that somebody reads. What is read to be written again comes
// with all of them: it is got, not watched.
//
// client-go decodes the events of a watch in a goroutine of its own, in which a panic would end the process. Here it is
// an error of the watch, and is reported to the Guard.
//
// The owner of a workload cluster gains nothing through it: how much of what he sends is read is limited by the
// transport (pkg/providers/connection/transport), as before.
package dynamicclient

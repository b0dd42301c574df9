// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dynamicclient creates dynamic and metadata clients with watches that their caller reads (Streamer), so that a
// panic of a decoder is in the caller's goroutine, under its guard. The dynamic ones decode responses with less CPU.
// client-go scans the text of each watch event nine times: to find its end, to read its kind, to validate it, to decode
// it, and all of that again for its object. Here it is three times. With client-go's, that was more than a quarter of
// the manager's CPU time with many claims.
//
// Results and errors are the same as with client-go's client, which handles everything but the common case: lists,
// errors and other forms of events. FuzzDecode and FuzzEvent compare the two. There is one exception: watch events keep
// only the managedFields entries that Masthead reads. Objects that are read in order to be updated have all of them,
// since they come from get requests, not watches.
//
// The owner of a workload cluster gains nothing through it: the transport still limits how much of a response is read
// (pkg/providers/connection/transport).
package dynamicclient

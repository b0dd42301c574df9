// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bounded limits what another party's API server can make this process hold, before anything is decoded.
//
// Decoding amplifies: 3 bytes of JSON, "{},", become 280 bytes as a PartialObjectMetadata, and 60 MB of them 6 GB. A
// limit of bytes is therefore no limit of memory. A Scanner reads a JSON text as it arrives, in chunks of any size, and
// ends it at the first byte that is over one of its Limits:
//
//   - Bytes: of the text.
//   - Cost: an upper bound of what the text takes in memory while it is read and decoded, whatever it is decoded into
//     (metadata, unstructured content, discovery documents). Each kind of token has a weight, see cost.go;
//     TestDecodedIsNotMoreThanTheCost measures that the weights are high enough.
//   - Values: how many values there are, of any kind.
//   - Depth: how deep objects and arrays are nested.
//   - Key and String: the length of one key and of one string.
//
// It also ends a text that is not JSON, so that no decoder can read something else in it than the Scanner did: what a
// Scanner passes to the end is valid for encoding/json (FuzzScanner). In a stream, as watches are, the limits hold for
// each document of it. A Scanner allocates nothing and holds about 200 bytes, whatever it reads.
//
// A Body puts a Scanner in front of an http.Response's body, and has what is under way charged to an Account, which
// says whether the process has room for it (package budget).
//
// Every refusal is an *Error: it says what was limited and the limit, and holds nothing that the server sent.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing. They can have their own answers refused. A Scanner keeps no text, and a refusal repeats none.
package bounded

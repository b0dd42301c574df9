// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Annotations of a composite resource, or of its claim, that tell the function what to do.
const (
	// AnnotationConnectionKeys names the connection details to return, separated by commas. Keys other than
	// username, password and endpoint get a value of their own. Default: DefaultConnectionKeys.
	AnnotationConnectionKeys = "localfleet.masthead.dev/connection-keys"

	// AnnotationWithholdConnection, with the value "true", makes the function return no connection details.
	AnnotationWithholdConnection = "localfleet.masthead.dev/withhold-connection"

	// AnnotationReady, with the value "false", keeps the composite unready for as long as it is set.
	AnnotationReady = "localfleet.masthead.dev/ready"

	// AnnotationReadyAfter is a duration, counted from the composite's creation, for which it stays unready and its
	// connection details are withheld, as with a slow database.
	AnnotationReadyAfter = "localfleet.masthead.dev/ready-after"

	// AnnotationFail makes the function return a fatal result with the annotation's value as message.
	AnnotationFail = "localfleet.masthead.dev/fail"

	// AnnotationSecrets and AnnotationConfigMaps say how many Secrets and ConfigMaps to compose. They are created in the
	// composite's namespace, or for a composite without one in the namespace of its claim.
	AnnotationSecrets    = "localfleet.masthead.dev/compose-secrets"
	AnnotationConfigMaps = "localfleet.masthead.dev/compose-configmaps"
)

// DefaultConnectionKeys are the connection details that a composite gets if it requests no others.
const DefaultConnectionKeys = "username,password,endpoint"

// maxComposed limits what one composite may request, so that a typing error does not fill the hub.
const maxComposed = 100

// orders are the annotations of one composite, parsed.
type orders struct {
	connectionKeys     []string
	withholdConnection bool
	ready              bool
	readyAfter         time.Duration
	fail               string
	secrets            int
	configMaps         int
}

// parseOrders reads the orders from annotations. An annotation that cannot be parsed is an error: a test that misspells
// a value must not pass because the default was used.
func parseOrders(annotations map[string]string) (orders, error) {
	o := orders{ready: true, fail: annotations[AnnotationFail]}

	keys, found := annotations[AnnotationConnectionKeys]
	if !found {
		keys = DefaultConnectionKeys
	}
	for key := range strings.SplitSeq(keys, ",") {
		if key = strings.TrimSpace(key); key != "" {
			o.connectionKeys = append(o.connectionKeys, key)
		}
	}

	var err error
	if o.withholdConnection, err = parseBool(annotations, AnnotationWithholdConnection, false); err != nil {
		return orders{}, err
	}
	if o.ready, err = parseBool(annotations, AnnotationReady, true); err != nil {
		return orders{}, err
	}
	if value, found := annotations[AnnotationReadyAfter]; found {
		if o.readyAfter, err = time.ParseDuration(value); err != nil {
			return orders{}, fmt.Errorf("annotation %s: %w", AnnotationReadyAfter, err)
		}
	}
	if o.secrets, err = parseCount(annotations, AnnotationSecrets); err != nil {
		return orders{}, err
	}
	if o.configMaps, err = parseCount(annotations, AnnotationConfigMaps); err != nil {
		return orders{}, err
	}
	return o, nil
}

func parseBool(annotations map[string]string, name string, absent bool) (bool, error) {
	value, found := annotations[name]
	if !found {
		return absent, nil
	}
	parsed, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("annotation %s: %w", name, err)
	}
	return parsed, nil
}

func parseCount(annotations map[string]string, name string) (int, error) {
	value, found := annotations[name]
	if !found {
		return 0, nil
	}
	count, err := strconv.Atoi(value)
	if err != nil {
		return 0, fmt.Errorf("annotation %s: %w", name, err)
	}
	if count < 0 || count > maxComposed {
		return 0, fmt.Errorf("annotation %s: %d is not between 0 and %d", name, count, maxComposed)
	}
	return count, nil
}

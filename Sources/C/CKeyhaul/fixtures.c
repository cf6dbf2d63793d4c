#include "CBundledFixtures.h"

// The files are embedded as binary data. The package manager's embedding writes each byte as an element of a Swift array,
// which takes the compiler ten seconds for 50 kB.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char every_rule[] = {
#embed "../../../Fixtures/devices/every-rule.json"
};
static const unsigned char every_rule_target[] = {
#embed "../../../Fixtures/devices/every-rule-target.json"
};
static const unsigned char hostile_names[] = {
#embed "../../../Fixtures/devices/hostile-names.json"
};
static const unsigned char new_phone[] = {
#embed "../../../Fixtures/devices/new-phone.json"
};
static const unsigned char old_phone[] = {
#embed "../../../Fixtures/devices/old-phone.json"
};

static const struct keyhaul_fixture fixtures[] = {
  {"every-rule", every_rule, sizeof every_rule},
  {"every-rule-target", every_rule_target, sizeof every_rule_target},
  {"hostile-names", hostile_names, sizeof hostile_names},
  {"new-phone", new_phone, sizeof new_phone},
  {"old-phone", old_phone, sizeof old_phone},
};

const struct keyhaul_fixture *keyhaul_fixtures(size_t *count) {
  *count = sizeof fixtures / sizeof fixtures[0];
  return fixtures;
}

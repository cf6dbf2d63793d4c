import KeychainFormats

/// The names of item attributes in objection's output.
enum ObjectionAttributes {
  static let codes: [String: AttributeCode] = [
    "account": .account, "service": .service, "server": .server, "label": .label, "entitlement_group": .accessGroup,
    "description": .itemDescription, "comment": .comment, "generic": .generic, "creator": .creator, "type": .type,
    "script_code": .scriptCode, "alias": .alias, "invisible": .isInvisible, "negative": .isNegative,
    "custom_icon": .hasCustomIcon, "protected": .legacyProtected, "create_date": .creationDate,
    "modification_date": .modificationDate, "security_domain": .securityDomain, "protocol": .protocolType,
    "authentication_type": .authenticationType, "port": .port, "path": .path,
  ]
}

/// The names of item attributes in grapefruit's output.
enum GrapefruitAttributes {
  static let codes: [String: AttributeCode] = [
    "creation": .creationDate, "modification": .modificationDate, "description": .itemDescription, "comment": .comment,
    "creator": .creator, "type": .type, "scriptCode": .scriptCode, "alias": .alias, "invisible": .isInvisible,
    "negative": .isNegative, "customIcon": .hasCustomIcon, "entitlementGroup": .accessGroup, "generic": .generic,
    "service": .service, "account": .account, "label": .label,
  ]
}

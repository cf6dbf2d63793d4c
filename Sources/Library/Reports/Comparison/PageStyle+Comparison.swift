extension PageStyle {
  /// What only the page of four restores has: their table.
  static let comparison = """
    .four{margin-top:1.6rem}
    .four th:first-child{width:32%}
    .four tbody td b{font-size:1.5rem;font-variant-numeric:tabular-nums}
    .four .current{background:var(--moves-tint)}
    .four tbody td{padding-left:.75rem}.four thead th:not(:first-child){padding-left:.75rem}
    .four .current small{color:var(--ink)}

    """
}

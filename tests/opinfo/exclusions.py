"""OpInfos that are left out, at most thirty, each with its reason."""

EXCLUDED: dict[str, str] = {
    "empty": "no defined value",
    "empty_like": "no defined value",
    "empty_permuted": "no defined value",
    "empty_strided": "no defined value",
    "new_empty": "no defined value",
    "new_empty_strided": "no defined value",
}


7
x0Placeholder*
dtype0*
shape:
/
x1Placeholder*
dtype0*
shape:
E
NotEqualNotEqualx0x1*
incompatible_shape_error(*
T0
'
IdentityIdentityNotEqual*
T0

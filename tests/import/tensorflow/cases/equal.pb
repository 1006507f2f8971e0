
7
x0Placeholder*
dtype0*
shape:
/
x1Placeholder*
dtype0*
shape:
?
EqualEqualx0x1*
incompatible_shape_error(*
T0
$
IdentityIdentityEqual*
T0
